"""Data sets of a faulty writer: windows that are wrong, under checksums that fit."""

import dataclasses
import os

from benchmarks.data.random_records import write_lane
from official.xlnet.data.schema import Manifest

T, REUSE, LANES, WINDOWS = 19, 7, 6, 5
LANE = "train-00002-of-00006.tfrecord"
WITHIN = r"a lane was expected to contain 5 elements but contained "
FAULTS = {
    "order": ({"rows": range(14, 9, -1)}, "out of order.*expected window ids"),
    "4 windows": ({"rows": range(10, 14)}, WITHIN + "only 4"),
    "6 windows": ({"rows": range(10, 16)}, WITHIN + "at least 6"),
    "no windows": ({"rows": range(0)}, WITHIN + "only 0"),
    "token_ids": ({"value": 10**9}, "token_ids: expected from 0 to "),
    "a_length": ({"value": -500}, "a_length: expected from 0 to 9 got"),
    "b_length": ({"value": 2**31}, "b_length: expected from"),
    "is_next": ({"value": 2}, "is_next: expected from 0 to 1 got"),
    "context_length": ({"value": -1}, "context_length: expected from 0"),
    "is_reversed": ({"value": 3}, "is_reversed: expected from 0 to 1"),
    "schema": ({"names": {"a_length"}}, "expected records of the schema, got"),
    "compression": ({"compression": "GZIP"}, "compressed as"),
}


def write_faulty_lane(path, windows, name):
    """Writes a lane of a data set with a fault; returns the error to expect.

    Args:
      path: directory of a data set of `write_data_set` with the sizes above.
      windows: what it returned.
      name: a key of FAULTS.
    """
    fault, sentence = FAULTS[name]
    if "value" in fault:
        windows[name].reshape(LANES * WINDOWS, -1)[12, 0] = fault["value"]
    windows = {
        key: numbers for key, numbers in windows.items() if key not in fault.get("names", ())
    }
    manifest = Manifest.load(path)
    train = manifest.splits["train"]
    sha256 = write_lane(os.path.join(path, LANE), windows, fault.get("rows", range(10, 15)))
    train = dataclasses.replace(train, files={**train.files, LANE: sha256})
    compression = fault.get("compression", manifest.compression)
    dataclasses.replace(manifest, splits={"train": train}, compression=compression).save(path)
    return sentence
