"""The work of the verbs: files and models in, results out; see `official.xlnet.api`."""
