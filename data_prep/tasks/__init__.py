"""Readers of fine-tuning data sets in their original file formats.

`task_data.read_examples` selects the reader by task type and kind of path, and returns
`official.xlnet.data.examples`. Nothing is dropped silently: invalid rows are counted, or raise an
error that names the file and line.
"""
