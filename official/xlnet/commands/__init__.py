"""The command line of verbs: signatures to flags, and what to type in the place of a wrong flag.

A verb is a function that `official.xlnet.api.verbs.register_verb` registers. To add a flag, add a
parameter with its annotation, its default and its line under `Args:`.
"""
