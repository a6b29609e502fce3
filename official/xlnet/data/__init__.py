"""From record files to batches: the schema, the lane schedule and the input pipeline."""
