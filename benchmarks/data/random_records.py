"""Random data sets in the schema of `official.xlnet.data.schema`."""

from __future__ import annotations

import hashlib
import io
import os

import numpy as np
import sentencepiece
import tensorflow as tf

from official.xlnet.data import file_names, schema
from official.xlnet.tokenization import special_tokens


def write_data_set(
    directory: str,
    seq_len: int,
    reuse_len: int,
    num_lanes: int,
    windows_per_lane: int,
    bidirectional: bool = True,
    split: str = "train",
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Writes a data set of random tokens: a vocabulary, lanes of windows and a manifest.

    Args:
      directory: output directory; created if missing.
      seq_len: number of tokens of a window, T.
      reuse_len: number of tokens of the reused part.
      num_lanes: number of lanes.
      windows_per_lane: number of windows per lane.
      bidirectional: whether odd lanes are marked as reversed text.
      split: `train` or `heldout`.
      seed: random seed of the tokens.

    Returns:
      The features of all W windows in the order of their ids, int64 [W] or [W, T].
    """
    os.makedirs(directory, exist_ok=True)
    vocab_size, vocab_sha256 = _write_vocabulary(os.path.join(directory, special_tokens.VOCAB_FILE))
    rng = np.random.default_rng(seed)
    num_windows = num_lanes * windows_per_lane
    lane = np.repeat(np.arange(num_lanes), windows_per_lane)
    a_length = rng.integers(1, seq_len - reuse_len - 3, num_windows)
    token_ids = rng.integers(special_tokens.NUM_SPECIAL, vocab_size, [num_windows, seq_len])
    token_ids[np.arange(num_windows), reuse_len + a_length] = special_tokens.SEP_ID
    token_ids[:, -2:] = special_tokens.SEP_ID, special_tokens.CLS_ID
    windows = {
        "token_ids": token_ids,
        "a_length": a_length,
        "b_length": seq_len - reuse_len - 3 - a_length,
        "is_next": rng.integers(0, 2, num_windows),
        "context_length": np.arange(num_windows) % windows_per_lane * reuse_len,
        "is_reversed": lane % 2 if bidirectional else np.zeros_like(lane),
        "window_id": np.arange(num_windows),
    }
    files = {}
    for number in range(num_lanes):
        name = file_names.lane_file(split, number, num_lanes)
        rows = range(number * windows_per_lane, (number + 1) * windows_per_lane)
        files[name] = write_lane(os.path.join(directory, name), windows, rows)
    counts = schema.SplitManifest(
        documents=num_lanes,
        tokens=num_windows * reuse_len,
        windows=num_windows,
        dropped_tokens=0,
        num_lanes=num_lanes,
        windows_per_lane=windows_per_lane,
        files=files,
    )
    schema.Manifest(
        schema_version=schema.SCHEMA_VERSION,
        seq_len=seq_len,
        reuse_len=reuse_len,
        bidirectional=bidirectional,
        vocab_size=vocab_size,
        vocab_sha256=vocab_sha256,
        seed=seed,
        splits={split: counts},
        source={},
    ).save(directory)
    return windows


def write_lane(path: str, windows: dict[str, np.ndarray], rows: range) -> str:
    """Writes windows as a record file and returns its SHA-256.

    Args:
      path: file to write.
      windows: features of all windows.
      rows: ids of the windows to write.
    """
    with tf.io.TFRecordWriter(path) as writer:
        for row in rows:
            example = tf.train.Example()
            for name, values in windows.items():
                example.features.feature[name].int64_list.value.extend(np.atleast_1d(values[row]))
            writer.write(example.SerializeToString(deterministic=True))
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_vocabulary(path: str) -> tuple[int, str]:
    """Trains a small vocabulary on random words; returns its size and SHA-256."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghij"), 3)) for _ in range(2000)]
    proto = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(words[i : i + 10]) for i in range(0, len(words), 10)]),
        model_writer=proto,
        vocab_size=97,
        unk_id=special_tokens.UNK_ID,
        bos_id=special_tokens.BOS_ID,
        eos_id=special_tokens.EOS_ID,
        control_symbols=["<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"],
        minloglevel=2,
    )
    with open(path, "wb") as file:
        file.write(proto.getvalue())
    return 97, hashlib.sha256(proto.getvalue()).hexdigest()
