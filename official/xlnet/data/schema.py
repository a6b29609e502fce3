"""Schema of pre-training data sets, shared by the writer (`data_prep`) and the input pipeline.

A data set is a directory:

    manifest.json                      counts, lengths, seeds and checksums (`Manifest`)
    spiece.model                       the SentencePiece vocabulary
    train-00000-of-00016.tfrecord      one file per lane; all lanes of a split have the same
    heldout-00000-of-00002.tfrecord    number of windows, in reading order

In bidirectional data, odd lanes hold reversed text. Each record is a `tf.train.Example` with int64
features:

    token_ids       [T]  reuse part | A | SEP | B | SEP | CLS
    a_length        [1]  length of A in tokens
    b_length        [1]  length of B in tokens; reuse_len + a_length + b_length + 3 = T
    is_next         [1]  1 if B is the text that follows A, 0 if B is a random segment
    context_length  [1]  number of tokens that directly precede token 0 in the same document and
                         were part of the reuse parts of earlier windows of the same lane
    is_reversed     [1]  1 if the lane holds reversed text
    window_id       [1]  lane * windows_per_lane + index; unique in its split

Example, with seq_len 10, reuse_len 3 and the tokens t0 t1 t2 … of the text:

    token_ids      = t0 t1 t2 | t3 t4 | SEP | t5 t6 | SEP | CLS
    segment_ids    =  0  0  0    0  0    0     1  1    1     2      (derived)
    a_length, b_length = 2, 2
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np

from official.xlnet.data.file_names import MANIFEST_FILE
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.json_files import read_json, write_json
from official.xlnet.files.schema import conform, shown

SCHEMA_VERSION = 1

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
    """Statistics and files of a split.

    Attributes:
      documents: number of documents.
      tokens: number of tokens, including one end-of-document token per document.
      windows: total number of windows, in both directions.
      dropped_tokens: number of tokens of the forward text that are in no reuse part.
      num_lanes: number of lanes (files).
      windows_per_lane: number of windows per lane.
      files: {file name: SHA-256}, in lane order.
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
    """Metadata of a data set, stored in `manifest.json`.

    Attributes:
      schema_version: version of the record format.
      seq_len: window length in tokens, T.
      reuse_len: stride between windows in tokens.
      bidirectional: whether odd lanes hold reversed text.
      vocab_size: vocabulary size, V.
      vocab_sha256: SHA-256 of `spiece.model`.
      seed: random seed of the held-out split and of the choice of segments A and B.
      splits: statistics of `train` and, if any document was held out, `heldout`.
      source: provenance: input files, settings, and counts of dropped text.
      compression: compression of the record files: `GZIP`, or empty for none.
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
        """Writes `manifest.json` to a directory atomically."""
        write_json(os.path.join(directory, MANIFEST_FILE), dataclasses.asdict(self))

    @classmethod
    def load(cls, directory: str) -> Manifest:
        """Loads the manifest of a data set.

        Args:
          directory: directory of the data set.

        Raises:
          DataError: the manifest is missing, invalid, or has another schema version.
        """
        path = os.path.join(directory, MANIFEST_FILE)
        try:
            tree = read_json(path)
        except FileNotFoundError:
            raise DataError(
                f"no data set at {directory!r}: expected the {MANIFEST_FILE} of `xlnet prepare`"
            ) from None
        version = tree.get("schema_version") if isinstance(tree, dict) else None
        require_data(
            version == SCHEMA_VERSION, path, f"schema_version {SCHEMA_VERSION}", f"{version!r}"
        )
        manifest = conform(tree, cls, path)
        manifest._check(path)
        return manifest

    def _check(self, path: str) -> None:
        """Raises `DataError` where a number cannot be, or numbers contradict each other."""
        most = np.iinfo(np.int32).max
        facts: list[tuple[str, Any, bool, str]] = [
            ("seq_len", self.seq_len, 3 < self.seq_len <= most, f"from 4 to {most}"),
            (
                "reuse_len",
                self.reuse_len,
                0 <= self.reuse_len < self.seq_len - 3,
                f"from 0 to seq_len - 4 = {self.seq_len - 4}",
            ),
            ("vocab_size", self.vocab_size, 0 < self.vocab_size <= most, f"from 1 to {most}"),
            ("compression", self.compression, self.compression in ("", "GZIP"), "GZIP or none"),
        ]
        for name, split in self.splits.items():
            lanes, windows, files = split.num_lanes, split.windows_per_lane, split.files
            product = lanes * windows
            facts += [
                (f"{name}: num_lanes", lanes, 0 < lanes == len(files), f"{len(files)}, one a file"),
                (f"{name}: windows_per_lane", windows, 0 < product <= most, "above 0"),
                (f"{name}: windows", split.windows, split.windows == product, f"{product}"),
            ]
            for key in ("documents", "tokens", "dropped_tokens"):
                count = getattr(split, key)
                facts.append((f"{name}: {key}", count, count >= 0, "at least 0"))
            for file in files:
                is_name = os.path.basename(file) == file
                facts.append((f"{name}: files", file, is_name, "names of files"))
        for key, value, holds, expected in facts:
            require_data(holds, f"{path} is damaged: {key}", expected, shown(value))
