"""Reading a window of a data set for display, and rendering it as text.

The targets and the factorization order are sampled exactly as in training, so the result is what
the model sees in the given epoch.
"""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import tensorflow as tf
from matplotlib.figure import Figure

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.validation import require_one_of
from official.xlnet.data.pretraining_dataset import reading_errors
from official.xlnet.data.record_features import load_data_tokenizer, parse_records
from official.xlnet.data.record_files.lane_from import lane_from, window_position
from official.xlnet.data.schema import SCALAR_FEATURES, Manifest
from official.xlnet.errors import require_data
from official.xlnet.files.text import printable
from official.xlnet.modeling.objectives.permutation_sampling import (
    Targets,
    sample_targets_and_order,
)
from official.xlnet.projects.pictures.masks import Masks, make_masks
from official.xlnet.runtime.display import DisplayMixin
from official.xlnet.tokenization.special_tokens import EOD_ID, NUM_SPECIAL, WORD_START
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.word_starts import word_starts

# ANSI escape sequences.
_RESET, _BOLD, _REVERSE = "\x1b[0m", "\x1b[1m", "\x1b[7m"
_COLORS = {"reuse": "\x1b[37m", "A": "\x1b[36m", "B": "\x1b[33m", "": "\x1b[35m"}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Window(DisplayMixin):
    """A window of a data set, with the targets and order sampled in one epoch.

    Attributes:
      title: data set, split, lane and index of the window.
      pieces: the tokens, T strings.
      part: part of each token: `reuse`, `A`, `B`, or empty for SEP and CLS.
      order: int32 [T], position in the factorization order.
      is_target: bool [T], whether a token is a prediction target.
      is_document_end: bool [T], whether a token is EOD.
      is_reversed: whether the window holds reversed text.
      is_next: whether B follows A in the text.
      context_length: number of preceding tokens of the same document in the lane.
      memory_length: number of those tokens that are in the memory.
      window_id: id of the window in the split.
      epoch: the epoch for which targets were sampled.
      text: {part: its text, in original reading order}.
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

    @property
    def masks(self) -> Masks:
        """Attention masks; the query stream, [T, T] here, has rows at targets only."""
        masks = make_masks(self.order)
        return Masks(masks.content, masks.query & self.is_target[:, np.newaxis])

    def plot(self) -> Figure:
        """Draws the attention masks."""
        return self.masks.plot()


def read_window(
    directory: str,
    config: XLNetConfig | None = None,
    split: str = "train",
    lane: int = 0,
    index: int = 0,
    epoch: int = 0,
) -> Window:
    """Reads a window of a data set and samples its targets and order.

    Args:
      directory: directory of the data set.
      config: configuration for target sampling and memory length; by default, targets are sampled
        as the configuration of the data set says, and the memory holds `reuse_len` tokens.
      split: `train` or `heldout`.
      lane: index of the lane.
      index: index of the window in its lane.
      epoch: the epoch, from 0, for which targets are sampled.

    Returns:
      The window.

    Raises:
      ConfigError: the objective of the configuration is another one, which has no such order.
      DataError: the data set or the window does not exist, is damaged, or does not match the
        configuration.
    """
    manifest = Manifest.load(directory)
    _check_index(directory, manifest, split, lane, index)
    lanes = manifest.splits[split]
    config = config or _default_config(manifest)
    key = "objective.kind of a window that is inspected"
    require_one_of(key, config.objective.kind, ("permutation",))
    data = config.data
    require_data(
        (data.seq_len, data.reuse_len) == (manifest.seq_len, manifest.reuse_len),
        directory,
        f"a configuration with seq_len {manifest.seq_len} and reuse_len {manifest.reuse_len}",
        f"{data.seq_len} and {data.reuse_len}",
    )
    tokenizer = load_data_tokenizer(manifest, directory)
    path = os.path.join(directory, list(lanes.files)[lane])
    with reading_errors(directory, split):
        length = lanes.windows_per_lane
        position = window_position(path, lane * length, index, length, manifest.compression)
        records = lane_from(path, position, index, manifest.compression).take(1)
        batches = [parse_records(record[tf.newaxis], manifest) for record in records]
    require_data(bool(batches), path, f"a window {index}", "fewer windows")
    features = {name: value[0].numpy() for name, value in batches[0].items()}
    ids = features["token_ids"].astype(np.int32)
    scalars = {name: int(features[name]) for name in SCALAR_FEATURES}
    is_reversed = bool(scalars["is_reversed"])
    step = -1 if is_reversed else 1
    sampled = _sample_targets(ids, is_reversed, scalars["window_id"], epoch, tokenizer, config)
    positions = sampled.target_positions[0].numpy()[sampled.target_mask[0].numpy() > 0]
    part = ["reuse"] * manifest.reuse_len + ["A"] * scalars["a_length"]
    part += ["", *["B"] * scalars["b_length"], "", ""]  # SEP, B, SEP and CLS.
    return Window(
        title=f"{os.path.basename(os.path.abspath(directory))}, {split}, "
        f"lane {lane} of {lanes.num_lanes}, window {index} of {lanes.windows_per_lane}",
        pieces=[tokenizer.id_to_piece(i) for i in ids],
        part=part,
        order=sampled.order[0].numpy(),
        is_target=np.isin(np.arange(len(ids)), positions),
        is_document_end=ids == EOD_ID,
        is_reversed=is_reversed,
        is_next=bool(scalars["is_next"]),
        context_length=scalars["context_length"],
        memory_length=min(scalars["context_length"], config.model.mem_len),
        window_id=scalars["window_id"],
        epoch=epoch,
        text={
            name: tokenizer.decode(ids[np.array(part) == name][::step].tolist())
            for name in ("reuse", "A", "B")
        },
    )


def as_text(window: Window, color: bool) -> str:
    """Renders a window as text for the terminal.

    Targets are shown in brackets with their position in the factorization order, `[piece 17]`.
    `¶` is the end-of-document token, which precedes the document in reversed text.

    Args:
      window: the window.
      color: whether to use ANSI colors for the parts and reverse video for targets.

    Returns:
      The text, without a trailing newline.
    """
    lines = [
        f"{printable(window.title)} (id {window.window_id}, epoch {window.epoch})",
        f"direction: {'reversed' if window.is_reversed else 'forward'}    "
        f"B {'follows A' if window.is_next else 'is a random segment'}    "
        f"context: {window.context_length} preceding tokens of the same document, "
        f"{window.memory_length} of them in the memory    targets: {window.is_target.sum()}",
    ]
    for name in ("reuse", "A", "B"):
        tokens = [_shown(window, i, color) for i, part in enumerate(window.part) if part == name]
        lines += ["", f"{name} ({len(tokens)} tokens)", "".join(tokens)]
        if window.is_reversed:
            lines += [f"in reading order: {printable(window.text[name])}"]
    return "\n".join(lines)


def _check_index(directory: str, manifest: Manifest, split: str, lane: int, index: int) -> None:
    """Raises `DataError` if a split, lane or window does not exist."""
    splits = ", ".join(manifest.splits)
    require_data(split in manifest.splits, directory, f"--split to be one of {splits}", split)
    lanes = manifest.splits[split]
    expected = f"--lane from 0 to {lanes.num_lanes - 1} in {split}"
    require_data(0 <= lane < lanes.num_lanes, directory, expected, lane)
    expected = f"--index from 0 to {lanes.windows_per_lane - 1} in {split}"
    require_data(0 <= index < lanes.windows_per_lane, directory, expected, index)


def _sample_targets(
    ids: np.ndarray,
    is_reversed: bool,
    window_id: int,
    epoch: int,
    tokenizer: Tokenizer,
    config: XLNetConfig,
) -> Targets:
    """Samples targets and order of one window, as a batch of size 1."""
    token_ids = tf.constant(ids[np.newaxis])
    starts = word_starts(tokenizer, config.data.phrases)(token_ids, tf.constant([is_reversed]))
    return sample_targets_and_order(
        token_ids,
        starts,
        tf.constant((ids >= NUM_SPECIAL)[np.newaxis]),
        tf.constant([is_reversed]),
        tf.constant([epoch]),
        tf.constant([window_id], tf.int64),
        data=config.data,
        seed=config.training.seed,
    )


def _shown(window: Window, i: int, color: bool) -> str:
    piece = window.pieces[i].replace(WORD_START, " ")
    if window.is_document_end[i]:
        return " ¶\n"
    space = " " if piece.startswith(" ") or window.is_reversed else ""
    body = printable(piece.removeprefix(" ")) or "␣"
    style = _COLORS[window.part[i]]
    if window.is_target[i]:
        body = f"[{body} {window.order[i]}]"
        style = _BOLD + _REVERSE
    if not color:
        return space + body
    return f"{space}{style}{body}{_RESET}"


def _default_config(manifest: Manifest) -> XLNetConfig:
    """Configuration with the window lengths and target settings that a data set was made with."""
    settings = manifest.source.get("settings", {})
    keys = {"num_predict", "target_ratio", "target_unit", "max_span"} & settings.keys()
    lengths = {"seq_len": manifest.seq_len, "reuse_len": manifest.reuse_len}
    data = lengths | {key: settings[key] for key in keys}
    return XLNetConfig.of({"data": data, "model": {"mem_len": manifest.reuse_len}})
