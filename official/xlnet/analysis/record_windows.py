"""One window of a data set as a person wants to see it: `Window`, and as text.

A window is read from its record, and targets and order are drawn for it as training draws them,
so what is shown is what a model sees in that epoch.
"""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.schema import Manifest, segment_ids
from official.xlnet.errors import DataError
from official.xlnet.modeling.objectives.permutation_sampling import sample_targets_and_order
from official.xlnet.tokenization.phrases import word_starts
from official.xlnet.tokenization.special_tokens import (
    EOD_ID,
    NUM_SPECIAL,
    SEGMENT_A,
    SEGMENT_B,
    VOCAB_FILE,
)
from official.xlnet.tokenization.tokenizer import WORD_START, Tokenizer

_RESET, _BOLD, _REVERSE = "\x1b[0m", "\x1b[1m", "\x1b[7m"
_COLORS = {"reuse": "\x1b[37m", "A": "\x1b[36m", "B": "\x1b[33m", "": "\x1b[35m"}


@dataclasses.dataclass(frozen=True)
class Window:
    """A window, its place in the data set, and what was drawn for it in one epoch.

    Attributes:
      title: data set, split, lane and number of the window.
      pieces: the tokens, T strings.
      part: of every token, `reuse`, `A`, `B`, or empty for SEP and CLS.
      order: int32 [T], step in the factorization order.
      is_target: bool [T].
      is_document_end: bool [T].
      is_reversed: whether it is reversed text.
      is_next: whether B follows A in the text.
      context_length: tokens of the same document before the window in its lane.
      memory_length: those of them that memory holds.
      window_id: its number in the split.
      epoch: of the draw.
      text: part → its tokens decoded in reading order.
    """

    title: str
    pieces: list[str]
    part: list[str]
    order: np.ndarray
    is_target: np.ndarray
    is_document_end: np.ndarray
    is_reversed: bool
    is_next: bool
    context_length: int
    memory_length: int
    window_id: int
    epoch: int
    text: dict[str, str]


def read_window(
    directory: str,
    config: XLNetConfig | None = None,
    split: str = "train",
    lane: int = 0,
    index: int = 0,
    epoch: int = 0,
) -> Window:
    """Reads a window and draws its targets and order.

    Args:
      directory: a data set.
      config: how targets are drawn, and how long memory is; by default one token in six is
        predicted and memory holds `reuse_len` tokens.
      split: `train` or `heldout`.
      lane: number of the lane.
      index: number of the window in its lane.
      epoch: epoch of the draw, from 0.

    Raises:
      DataError: there is no such window.
    """
    manifest = Manifest.load(directory)
    if split not in manifest.splits:
        raise DataError(f"{directory}: expected --split to be one of {', '.join(manifest.splits)}")
    lanes = manifest.splits[split]
    for name, number, limit in (
        ("lane", lane, lanes.num_lanes),
        ("index", index, lanes.windows_per_lane),
    ):
        if not 0 <= number < limit:
            raise DataError(
                f"{directory}: expected --{name} from 0 to {limit - 1} in {split}, got {number}"
            )
    config = config or _default_config(manifest)
    if (config.data.seq_len, config.data.reuse_len) != (manifest.seq_len, manifest.reuse_len):
        raise DataError(
            f"{directory} has seq_len {manifest.seq_len} and reuse_len {manifest.reuse_len}, the "
            f"configuration {config.data.seq_len} and {config.data.reuse_len}"
        )
    tokenizer = Tokenizer(os.path.join(directory, VOCAB_FILE))
    path = os.path.join(directory, list(lanes.files)[lane])
    features = _read_record(path, index, manifest.compression)
    ids = np.array(features["token_ids"], np.int32)
    (a_length,), (b_length,) = features["a_length"], features["b_length"]
    (is_reversed,), (window_id,) = features["is_reversed"], features["window_id"]
    starts = word_starts(tokenizer, config.data.phrases)(
        tf.constant(ids[np.newaxis]), tf.constant([bool(is_reversed)])
    )
    drawn = sample_targets_and_order(
        tf.constant(ids[np.newaxis]),
        starts,
        tf.constant((ids >= NUM_SPECIAL)[np.newaxis]),
        tf.constant([bool(is_reversed)]),
        tf.constant([epoch]),
        tf.constant([window_id], tf.int64),
        data=config.data,
        seed=config.training.seed,
    )
    positions = drawn.target_positions[0].numpy()[drawn.target_mask[0].numpy() > 0]
    is_target = np.zeros(len(ids), bool)
    is_target[positions] = True
    part = _parts(manifest.reuse_len, a_length, b_length)
    (context_length,) = features["context_length"]
    return Window(
        title=f"{directory}, {split}, lane {lane} of {lanes.num_lanes}, "
        f"window {index} of {lanes.windows_per_lane}",
        pieces=[tokenizer.id_to_piece(i) for i in ids],
        part=part,
        order=drawn.order[0].numpy(),
        is_target=is_target,
        is_document_end=ids == EOD_ID,
        is_reversed=bool(is_reversed),
        is_next=bool(features["is_next"][0]),
        context_length=context_length,
        memory_length=min(context_length, config.model.mem_len),
        window_id=window_id,
        epoch=epoch,
        text={
            name: tokenizer.decode(_reading_order(ids[np.array(part) == name], is_reversed))
            for name in ("reuse", "A", "B")
        },
    )


def as_text(window: Window, color: bool) -> str:
    """A window for the terminal.

    Targets are in brackets with their step in the order, `[piece 17]`; `¶` ends a document (it
    comes before the text of the document where text is reversed).

    Args:
      window: what to show.
      color: whether to color the parts and to mark targets by reversed video.
    """
    lines = [
        f"{window.title} (id {window.window_id}, epoch {window.epoch})",
        f"direction: {'reversed' if window.is_reversed else 'forward'}    "
        f"B {'follows A' if window.is_next else 'is from elsewhere'}    "
        f"context: {window.context_length} tokens of the same document before it, "
        f"{window.memory_length} of them in memory    targets: {window.is_target.sum()}",
    ]
    for name in ("reuse", "A", "B"):
        tokens = [_shown(window, i, color) for i, part in enumerate(window.part) if part == name]
        lines += ["", f"{name} ({len(tokens)} tokens)", "".join(tokens)]
        if window.is_reversed:
            lines += [f"in reading order: {window.text[name]}"]
    return "\n".join(lines)


def _shown(window: Window, i: int, color: bool) -> str:
    piece = window.pieces[i].replace(WORD_START, " ")
    if window.is_document_end[i]:
        return " ¶\n"
    space = " " if piece.startswith(" ") or window.is_reversed else ""
    body = piece.removeprefix(" ") or "␣"
    if not window.is_target[i]:
        return space + (f"{_COLORS[window.part[i]]}{body}{_RESET}" if color else body)
    marked = f"[{body} {window.order[i]}]"
    return space + (f"{_BOLD}{_REVERSE}{marked}{_RESET}" if color else marked)


def _default_config(manifest: Manifest) -> XLNetConfig:
    config = XLNetConfig()
    config.data.seq_len, config.data.reuse_len = manifest.seq_len, manifest.reuse_len
    config.data.num_predict = max(1, round(manifest.seq_len / config.data.target_ratio))
    config.model.mem_len = manifest.reuse_len
    return config


def _read_record(path: str, index: int, compression: str) -> dict[str, list[int]]:
    try:
        dataset = tf.data.TFRecordDataset(path, compression).skip(index).take(1)
        records = list(dataset.as_numpy_iterator())
        example = tf.train.Example.FromString(records[0])
    except (tf.errors.OpError, IndexError) as error:
        raise DataError(f"{path}: cannot read window {index}: {error}") from None
    return {
        name: list(feature.int64_list.value) for name, feature in example.features.feature.items()
    }


def _parts(reuse_len: int, a_length: int, b_length: int) -> list[str]:
    names = {SEGMENT_A: "A", SEGMENT_B: "B"}
    parts = [names.get(segment, "") for segment in segment_ids(reuse_len, a_length, b_length)]
    parts[:reuse_len] = ["reuse"] * reuse_len
    parts[reuse_len + a_length] = parts[-2] = ""
    return parts


def _reading_order(ids: np.ndarray, is_reversed: int) -> list[int]:
    return (ids[::-1] if is_reversed else ids).tolist()
