"""Names of the files of a pre-training data set; see `schema`."""

MANIFEST_FILE = "manifest.json"


def lane_file(split: str, lane: int, num_lanes: int) -> str:
    """File name of a lane, e.g. `train-00003-of-00016.tfrecord`."""
    return f"{split}-{lane:05d}-of-{num_lanes:05d}.tfrecord"
