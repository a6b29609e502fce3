"""The schema of pre-training records, shared by the writer (data_prep) and the trainer.

A data set is a directory:

    manifest.json                      counts, lengths, seeds and checksums (`Manifest`)
    spiece.model                       the vocabulary that the ids are of
    train-00000-of-00016.tfrecord      one file a lane; every lane of a split holds the same
    heldout-00000-of-00002.tfrecord    number of windows, in reading order

Lanes are numbered so that odd lanes are reversed text where the data is bidirectional. Each
record is a `tf.train.Example` with int64 features:

    token_ids       [T]  reuse part | A | SEP | B | SEP | CLS
    a_length        [1]  tokens of A
    b_length        [1]  tokens of B; reuse_len + a_length + b_length + 3 = T
    is_next         [1]  1 when B is the text that follows A, 0 when it is from elsewhere
    context_length  [1]  tokens of the same document right before token 0, in the lane's
                         direction, of those that the same lane has already shown as reuse parts
    is_reversed     [1]  1 when the lane holds reversed text
    window_id       [1]  lane * windows_per_lane + index: unique in its split

Example, seq_len 10, reuse_len 3, text pieces t0 t1 t2 …:

    token_ids      = t0 t1 t2 | t3 t4 | SEP | t5 t6 | SEP | CLS
    segment_ids    =  0  0  0    0  0    0     1  1    1     2      (derived)
    a_length, b_length = 2, 2
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

import numpy as np

from official.xlnet.errors import DataError
from official.xlnet.tokenization.special_tokens import SEGMENT_A, SEGMENT_B, SEGMENT_CLS

SCHEMA_VERSION = 1
MANIFEST_FILE = "manifest.json"

SCALAR_FEATURES = (
    "a_length",
    "b_length",
    "is_next",
    "context_length",
    "is_reversed",
    "window_id",
)


@dataclasses.dataclass(frozen=True)
class SplitManifest:
    """Counts of one split.

    Attributes:
      documents: documents in the split.
      tokens: tokens of those documents, one eod each included.
      windows: windows over all lanes, both directions.
      dropped_tokens: tokens of the forward text that are in no reuse part.
      num_lanes: number of lanes; each is one file.
      windows_per_lane: windows of every lane.
      files: {file name: SHA-256 of its bytes}, in lane order.
    """

    documents: int
    tokens: int
    windows: int
    dropped_tokens: int
    num_lanes: int
    windows_per_lane: int
    files: dict[str, str]


@dataclasses.dataclass(frozen=True)
class Manifest:
    """What a data set directory holds.

    Attributes:
      schema_version: version of the record format.
      seq_len: tokens T of a window.
      reuse_len: tokens by which windows advance.
      bidirectional: whether odd lanes are reversed text.
      vocab_size: number of pieces.
      vocab_sha256: checksum of `spiece.model`.
      seed: seed of A/B choices and of the held-out split.
      splits: `train` and, if any document was held out, `heldout`.
      source: what was read, filtered and dropped; for people.
      compression: of record files: GZIP, or empty for none.
    """

    schema_version: int
    seq_len: int
    reuse_len: int
    bidirectional: bool
    vocab_size: int
    vocab_sha256: str
    seed: int
    splits: dict[str, SplitManifest]
    source: dict[str, Any]
    compression: str = ""

    def save(self, directory: str) -> None:
        """Writes `manifest.json` by a temporary name and a rename."""
        path = os.path.join(directory, MANIFEST_FILE)
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            json.dump(dataclasses.asdict(self), file, indent=1)
            file.write("\n")
        os.replace(path + ".tmp", path)

    @classmethod
    def load(cls, directory: str) -> Manifest:
        """Reads a data set's manifest.

        Raises:
          DataError: there is none, it is not one, or it is of another schema version.
        """
        path = os.path.join(directory, MANIFEST_FILE)
        try:
            with open(path, encoding="utf-8") as file:
                tree = json.load(file)
        except FileNotFoundError:
            raise DataError(
                f"no data set at {directory!r}: expected the {MANIFEST_FILE} of `xlnet prepare`"
            ) from None
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{path} is damaged: {error}") from None
        version = tree.get("schema_version") if isinstance(tree, dict) else None
        if version != SCHEMA_VERSION:
            raise DataError(f"{path}: expected schema_version {SCHEMA_VERSION}, got {version!r}")
        try:
            splits = {name: SplitManifest(**split) for name, split in tree.pop("splits").items()}
            return cls(splits=splits, **tree)
        except (TypeError, KeyError, AttributeError) as error:
            raise DataError(f"{path} is damaged: {error}") from None


def lane_file(split: str, lane: int, num_lanes: int) -> str:
    """Name of a lane's record file, e.g. `train-00003-of-00016.tfrecord`."""
    return f"{split}-{lane:05d}-of-{num_lanes:05d}.tfrecord"


def segment_ids(reuse_len: int, a_length: int, b_length: int) -> np.ndarray:
    """Segment ids int32 [T] of one window: 0 to A's SEP, 1 to B's SEP, 2 for CLS."""
    return np.repeat(
        np.array([SEGMENT_A, SEGMENT_B, SEGMENT_CLS], np.int32),
        [reuse_len + a_length + 1, b_length + 1, 1],
    )
