"""Features of the windows in records, and the vocabulary that they were written with."""

from __future__ import annotations

import os

import numpy as np
import tensorflow as tf

from official.xlnet.configs.data import TEXT_SETTINGS
from official.xlnet.data.file_names import MANIFEST_FILE
from official.xlnet.data.record_files.checksums import OTHER_FILE
from official.xlnet.data.schema import SCALAR_FEATURES, Manifest
from official.xlnet.files.checksums import check_sha256
from official.xlnet.tokenization.special_tokens import NUM_SPECIAL, VOCAB_FILE
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.word_starts import WordStarts

WRONG = "wrong record: "  # Begins messages of TensorFlow about what records hold.
NUM_REPORTED_IDS = 8  # In a message.


def load_data_tokenizer(manifest: Manifest, path: str) -> Tokenizer:
    """Loads the tokenizer of a data set.

    Args:
      manifest: the data set's manifest.
      path: the data set directory.

    Raises:
      DataError: the vocabulary is missing, invalid, or not the one in the manifest.
    """
    settings = manifest.source.get("settings", {})
    cleaning = {name: bool(settings.get(name)) for name in TEXT_SETTINGS}
    tokenizer = Tokenizer(os.path.join(path, VOCAB_FILE), **cleaning)
    meaning = f"as in {MANIFEST_FILE}"
    check_sha256(tokenizer.model_file, manifest.vocab_sha256, meaning, OTHER_FILE)
    return tokenizer


def parse_records(records: tf.Tensor, manifest: Manifest) -> dict[str, tf.Tensor]:
    """Parses records, and checks that every value is in its range.

    Wrap the code that runs it in `reading_errors`.

    Args:
      records: string [B], serialized records.
      manifest: the manifest of their data set.

    Returns:
      `token_ids`, int64 [B, T], and the scalar features, int64 [B]; see `data.schema`.
    """
    schema = {name: tf.io.FixedLenFeature([], tf.int64) for name in SCALAR_FEATURES}
    schema["token_ids"] = tf.io.FixedLenFeature([manifest.seq_len], tf.int64)
    example = tf.io.parse_example(records, schema)
    # The lengths of reuse part, A and B add up to all tokens except two SEP and CLS.
    a_and_b = manifest.seq_len - manifest.reuse_len - 3
    ranges = {
        "token_ids": (0, manifest.vocab_size - 1),
        "a_length": (0, a_and_b),
        "b_length": (a_and_b - example["a_length"],) * 2,
        "is_next": (0, 1),
        "context_length": (0, tf.int32.max),
        "is_reversed": (0, int(manifest.bidirectional)),
        "window_id": (0, tf.int64.max),
    }
    checks = [
        tf.debugging.Assert(
            tf.reduce_all((example[name] >= low) & (example[name] <= high)),
            [f"{WRONG}{name}: expected from", low, "to", high, "got", example[name]],
            summarize=NUM_REPORTED_IDS,
        )
        for name, (low, high) in ranges.items()
    ]
    with tf.control_dependencies([check for check in checks if check is not None]):
        return {name: tf.identity(value) for name, value in example.items()}


def window_features(
    records: tf.Tensor, manifest: Manifest, starts: WordStarts, letter_case: np.ndarray
) -> dict[str, tf.Tensor]:
    """Returns the features of a batch that do not depend on the lane schedule.

    They are those of `pretraining_dataset`, except `epoch` and `follows`.

    Args:
      records: string [B], serialized records.
      manifest: the manifest of their data set.
      starts: see `word_starts`.
      letter_case: see `Tokenizer`.
    """
    example = parse_records(records, manifest)
    token_ids_BT = example["token_ids"]
    is_reversed_B = tf.cast(example["is_reversed"], tf.bool)
    position_T = tf.range(manifest.seq_len, dtype=tf.int64)
    first_of_b_B1 = manifest.reuse_len + example["a_length"][:, tf.newaxis] + 1
    is_past_a_BT, is_cls_T = position_T >= first_of_b_B1, position_T == manifest.seq_len - 1
    return {
        "token_ids": tf.cast(token_ids_BT, tf.int32),
        "segment_ids": tf.cast(is_past_a_BT, tf.int32) + tf.cast(is_cls_T, tf.int32),
        "is_word_start": starts(token_ids_BT, is_reversed_B),
        "letter_case": tf.gather(letter_case, token_ids_BT),
        "can_be_target": token_ids_BT >= NUM_SPECIAL,
        "is_reversed": is_reversed_B,
        "context_length": tf.cast(example["context_length"], tf.int32),
        "is_next": tf.cast(example["is_next"], tf.int32),
        "window_id": example["window_id"],
    }
