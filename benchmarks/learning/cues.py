"""What each objective can learn from where: cues to the left, cues to the right, pairs of targets.

    python -m benchmarks.learning.cues --output=runs/cues --document=docs/ablation.md

The argument of sections 2.6 and A.5 of the paper on synthetic text, where the lowest loss that is
possible is known. A window of noise holds, each at a random place,

    CUE-i A-i          a token that the token to its left determines
    MARK B-i CUE'-i    one that the token to its right determines
    MARK' X-i Y-i      two that nothing else determines, but each the other ("New York")

with i one of eight, at random. The network is the same for all objectives: causal (GPT), denoising
(BERT) and permutation (XLNet), without memory. A pair is read twice: from the context alone, in one
pass with both tokens hidden, and by the chain rule from left to right. Denoising then needs a pass
for each token: mask both, predict the first, put it in, predict the second. Permutation language
modeling reads it in one.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from benchmarks.harness.command_line import flag
from benchmarks.harness.tables import markdown_table
from benchmarks.harness.verdicts import mean_and_interval
from benchmarks.learning.common import SEEDS, kept, parse_experiment, publish
from official import xlnet
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.tokenization.special_tokens import MASK_ID, NUM_SPECIAL

KINDS = 8  # Values of each cue: chance is ln 8 nats.
_NOISE = 8
_SEQ_LEN = 24
_NUM_TEST = 512
# First token ids of what the three patterns are made of; after these, their two marks.
_CUE, _LEFT, _RIGHT, _RIGHT_CUE, _FIRST, _SECOND, _MARKS = (
    NUM_SPECIAL + _NOISE + KINDS * number for number in range(7)
)
VOCAB = _MARKS + 2
_BATCH_SIZE = 64
_SETTINGS = {
    "model": {"vocab_size": VOCAB, "num_layers": 2, "d_model": 64, "num_heads": 4, "d_inner": 128}
    | {"mem_len": 0, "dropout": 0.0, "dropatt": 0.0}
    | {"init_std": 0.1, "attention_init": "neighbors"},
    "data": {"seq_len": _SEQ_LEN, "reuse_len": 0, "num_predict": 6, "target_ratio": 4.0}
    | {"target_unit": "token", "max_span": 1, "bidirectional": False},
    # As in configs/tiny.yaml: with AdamW and a usual start, XLNet needs more steps.
    "training": {"batch_size": _BATCH_SIZE}
    | {"optimizer": "muon", "muon_scale": 0.6, "learning_rate": 8e-3},
}
# {objective: title of its row}.
ROWS = {"causal": "GPT", "denoising": "BERT", "permutation": "XLNet"}
# {column: title}.
COLUMNS = {
    "left": "cue to the left",
    "right": "cue to the right",
    "alone": "pair, context alone",
    "chain": "pair, left to right",
}


class Windows(NamedTuple):
    """Windows of synthetic text.

    Attributes:
      token_ids: int32 [B, T].
      left, right, pair: int32 [B], positions of the determined tokens, and of the pair's first.
    """

    token_ids: np.ndarray
    left: np.ndarray
    right: np.ndarray
    pair: np.ndarray


def make_windows(rng: np.random.Generator, number: int) -> Windows:
    """Draws windows: the three patterns in random order, with noise before, between and after.

    Args:
      rng: random generator.
      number: number of windows, B.
    """
    token_ids = NUM_SPECIAL + rng.integers(0, _NOISE, [number, _SEQ_LEN]).astype(np.int32)
    places = np.zeros([number, 3], np.int32)
    for row in token_ids:
        i, j, k = rng.integers(0, KINDS, 3)
        patterns = (
            [_CUE + i, _LEFT + i],
            [_MARKS, _RIGHT + j, _RIGHT_CUE + j],
            [_MARKS + 1, _FIRST + k, _SECOND + k],
        )
        free = _SEQ_LEN - sum(map(len, patterns))
        gaps = np.diff(np.sort(rng.integers(0, free + 1, 3)), prepend=0)
        position = 0
        for gap, number_of_pattern in zip(gaps, rng.permutation(3), strict=True):
            pattern = patterns[number_of_pattern]
            position += gap
            row[position : position + len(pattern)] = pattern
            places[len(places) - number, number_of_pattern] = position + 1
            position += len(pattern)
        number -= 1
    return Windows(token_ids, *places.T)


def batch_of(rng: np.random.Generator, number: int, first: int) -> dict[str, tf.Tensor]:
    """A batch for training, as `pretraining_dataset` gives it.

    Args:
      rng: random generator.
      number: number of windows.
      first: number of the first window, which targets and orders are drawn from.
    """
    token_ids = make_windows(rng, number).token_ids
    ones = np.ones_like(token_ids, bool)
    return {
        "token_ids": tf.constant(token_ids),
        "segment_ids": tf.zeros_like(token_ids),
        "is_word_start": tf.constant(ones),
        "can_be_target": tf.constant(ones),
        "is_reversed": tf.zeros([number], tf.bool),
        "context_length": tf.zeros([number], tf.int32),
        "window_id": tf.constant(np.arange(first, first + number)),
        "epoch": tf.zeros([number], tf.int32),
    }


def trained(kind: str, seed: int, steps: int) -> dict[str, Any]:
    """Trains a network with an objective, and reads the patterns of windows that it has not seen.

    Args:
      kind: `objective.kind`.
      seed: random seed of weights, windows and targets.
      steps: number of steps.

    Returns:
      `objective`, `seed`, and mean negative log-likelihoods in nats: `left` and `right` of a token,
      `alone` and `chain` of a pair; a causal model reads a pair by the chain rule only.
    """
    print(f"{kind}, seed {seed}", file=sys.stderr, flush=True)
    keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    length = [f"training.num_steps={steps}", f"training.warmup_steps={steps // 10}"]
    config = xlnet.XLNetConfig.from_dict(_SETTINGS).changed(
        [f"objective.kind={kind}", f"training.seed={seed}", *length]
    )
    model = xlnet.XLNetPretrainer(config)
    model.compile(xlnet.create_optimizer(config.training, config.model.num_layers))
    batches = (batch_of(rng, _BATCH_SIZE, _BATCH_SIZE * step) for step in range(steps))
    first = batch_of(np.random.default_rng(0), _BATCH_SIZE, 0)
    signature = {name: tf.TensorSpec(x.shape, x.dtype) for name, x in first.items()}
    data = tf.data.Dataset.from_generator(lambda: batches, output_signature=signature)
    model.fit(data, steps_per_epoch=steps, verbose=0)
    return {"objective": kind, "seed": seed} | read(model, make_windows(rng, _NUM_TEST))


def read(model: xlnet.XLNetPretrainer, windows: Windows) -> dict[str, float]:
    """What a model reads in windows; see `trained`."""
    one = {
        name: losses_at(model, windows.token_ids, getattr(windows, name)[:, None])
        for name in ("left", "right")
    }
    pair_BP = windows.pair[:, None] + np.arange(2)
    result = {name: float(losses.mean()) for name, losses in one.items()}
    result["chain"] = float(losses_at(model, windows.token_ids, pair_BP).sum(axis=1).mean())
    if model.config.objective.kind != "causal":
        alone = losses_at(model, windows.token_ids, pair_BP, in_order=False)
        result["alone"] = float(alone.sum(axis=1).mean())
    return result


def losses_at(
    model: xlnet.XLNetPretrainer,
    token_ids: np.ndarray,
    positions_BP: np.ndarray,
    in_order: bool = True,
) -> np.ndarray:
    """Negative log-likelihoods of tokens given all tokens that are not asked for.

    Args:
      model: the model; a causal one is only given the tokens to the left.
      token_ids: int32 [B, T].
      positions_BP: int [B, P], consecutive.
      in_order: whether each token is also given those before it.

    Returns:
      float32 [B, P], in nats.
    """
    kind, place_BT = model.config.objective.kind, np.arange(_SEQ_LEN)[None]
    rank_BT = place_BT - positions_BP[:, :1] + 1
    is_asked_BT = (rank_BT >= 1) & (rank_BT <= positions_BP.shape[1])
    if kind == "denoising" and in_order and positions_BP.shape[1] > 1:
        columns = []
        for number in range(positions_BP.shape[1]):
            masked = np.where(is_asked_BT & (rank_BT > number), MASK_ID, token_ids)
            columns.append(_losses(model, masked, token_ids, positions_BP[:, number : number + 1]))
        return np.concatenate(columns, axis=1)
    if kind == "denoising":
        return _losses(model, np.where(is_asked_BT, MASK_ID, token_ids), token_ids, positions_BP)
    order = np.where(is_asked_BT, rank_BT if in_order else 1, 0)
    if kind == "causal":
        order = np.broadcast_to(place_BT, token_ids.shape)
    return _losses(model, token_ids, token_ids, positions_BP, order.astype(np.int32))


def _losses(model, inputs_BT, token_ids, positions_BP, order_BT=None) -> np.ndarray:
    """Losses [B, P] of one pass; from the query stream, or where there is none from the content."""
    kind = model.config.objective.kind
    inputs: dict[str, Any] = {
        "token_ids": tf.constant(inputs_BT, tf.int32),
        "segment_ids": tf.zeros_like(token_ids),
    }
    if order_BT is not None:
        inputs["order"] = tf.constant(order_BT)
    where = positions_BP - 1 if kind == "causal" else positions_BP
    name = "target_positions" if kind == "permutation" else "content_positions"
    inputs[name] = tf.constant(where, tf.int32)
    labels_BP = tf.gather(tf.constant(token_ids), positions_BP, batch_dims=1)
    logits_BPV = model(inputs)["logits"]
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels_BP, logits_BPV).numpy()


def main() -> None:
    """Trains every objective with every seed, and writes the table."""
    flags = parse_experiment(__doc__, seeds=SEEDS, steps=flag(500, "training steps of each run"))
    runs = []
    for kind, seed in itertools.product(ROWS, range(flags.seeds)):
        path = os.path.join(flags.output, f"{kind}-{flags.steps}-{seed}.json")
        runs.append(kept(path, functools.partial(trained, kind, seed, flags.steps)))
    found = tables(runs)
    print(found["cues"], file=sys.stderr)
    if flags.document:
        publish(flags.document, "cues", runs, found)
    names = [f"{run['objective']} {run['seed']}" for run in runs]
    losses = [[run[column] for column in COLUMNS if column in run] for run in runs]
    print(json.dumps(dict(zip(names, losses, strict=True))))


def tables(runs: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Formats a row for each objective, the lowest possible loss, and chance."""
    chance = math.log(KINDS)
    lines = [["nats", "seeds", *COLUMNS.values()]]
    for kind, title in ROWS.items():
        of_kind = [run for run in runs if run["objective"] == kind]
        columns = ([run[name] for run in of_kind if name in run] or [math.nan] for name in COLUMNS)
        lines.append([title, str(len(of_kind)), *map(mean_and_interval, columns)])
    one, two = f"{chance:.3f}", f"{2 * chance:.3f}"
    lines += [["lowest", "", "0", "0", two, one], ["chance", "", one, one, two, two]]
    return {"cues": markdown_table(lines)}


if __name__ == "__main__":
    main()
