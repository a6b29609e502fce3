"""Data: the record schema, the input pipeline for pre-training, and task examples."""
