"""Readers of task data: from files as they are downloaded to `official.xlnet.data.examples`.

`read_examples` finds the reader by the kind of task and by what the path is. Nothing is dropped
silently: what cannot be used is counted, or is an error that names file and line.
"""
