"""Learning benchmark: the effect of memory.

    python -m benchmarks.learning --text=FILE --output=DIR --document=docs/experiments.md

Trains the network of `tiny` on short windows with several seeds: with memory, and without at equal
steps and at equal compute, which is a third more. Held-out text gives the loss, and the relative
effective context (`projects.any_order.context_length`), read in windows that hold its longest
passages. Interrupted runs resume when the command is run again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.harness.command_line import flag
from benchmarks.harness.tables import markdown_table
from benchmarks.harness.verdicts import (
    Difference,
    difference,
    mean_and_interval,
    over_runs,
    over_texts,
    with_verdicts,
)
from benchmarks.learning.common import (
    SEEDS,
    TEXT,
    heldout_documents,
    kept,
    make_data,
    parse_experiment,
    publish,
    train,
)
from official import xlnet
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.tokenization.tokenizer import Tokenizer

_CONFIG = "configs/tiny.yaml"
_VOCAB_SIZE = 4000
# A network trained for minutes has an effective context of about 16 tokens, so memory matters at
# the start of windows. These windows are four times shorter than those of the recipe.
_SETTINGS = (
    "data.seq_len=32",
    "data.reuse_len=16",
    "data.num_predict=10",
    "data.num_lanes=64",
    "training.batch_size=64",
    "training.parallel_slices=1",
)
# {row: (title, length of its memory, steps for one of the row with memory)}.
ROWS = {
    "with": ("with memory", 64, 1.0),
    "without": ("without, equal steps", 0, 1.0),
    "longer": ("without, equal compute", 0, 4 / 3),
}
_LENGTHS = (1, 2, 4, 8, 16, 24, 32, 48)  # Of contexts, in words.
_MOST_PASSAGES = 200
_READ = 128  # Tokens of the windows in which passages are read.
_RESAMPLES = 200
_SHOWN = (4, -1)  # Numbers of the contexts whose losses the tables show.


def main() -> None:
    flags = parse_experiment(
        __doc__,
        text=TEXT,
        seeds=SEEDS,
        steps=flag(600, "training steps of the runs with memory"),
    )
    config = xlnet.XLNetConfig.load(_CONFIG, _SETTINGS)
    forward = xlnet.XLNetConfig.load(_CONFIG, [*_SETTINGS, "data.bidirectional=false"])
    make_data([flags.text], flags.output, {"data": config, "forward": forward}, _VOCAB_SIZE)
    runs = [_compare_memory(flags, seed) for seed in range(flags.seeds)]
    found = tables(runs)
    print(*found.values(), sep="\n\n", file=sys.stderr)
    if flags.document:
        publish(flags.document, "memory", runs, found)
    print(json.dumps({name: _means(runs, name) for name in ROWS}))


def _means(runs: Sequence[dict[str, Any]], name: str) -> list[float]:
    """Loss of a row, and of its last words after each context."""
    rows = [run["rows"][name] for run in runs]
    of_passages = np.mean([row["of_passages"] for row in rows], axis=(0, 2))
    return [float(np.mean([row["loss"] for row in rows])), *of_passages.tolist()]


def _compare_memory(flags: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Returns the held-out losses with memory and without, of lanes and of ends of passages."""

    def run() -> dict[str, Any]:
        texts = passages(flags.output)
        rows = {name: _trained(flags, name, seed, texts) for name in ROWS}
        return {"seed": seed, "lengths": [*_LENGTHS], "rows": rows}

    return kept(os.path.join(flags.output, "runs", f"{seed}.json"), run, _CONFIG)


def _trained(
    flags: argparse.Namespace, name: str, seed: int, texts: Sequence[str]
) -> dict[str, Any]:
    """Trains a model; returns its loss on held-out lanes, and on the last words of passages."""
    from official.xlnet.inference.language_model import require_windows
    from official.xlnet.projects.any_order.context_length import losses_by_context

    _, mem_len, factor = ROWS[name]
    steps = round(factor * flags.steps)
    print(name, steps, "steps, seed", seed, file=sys.stderr, flush=True)
    settings = (f"num_steps={steps}", f"warmup_steps={steps // 8}", f"training.seed={seed}")
    model, data = os.path.join(flags.output, f"{name}_{seed}"), os.path.join(flags.output, "data")
    cpu_seconds = train(_CONFIG, data, model, [*_SETTINGS, *settings, f"mem_len={mem_len}"])
    sums, sizes = _lanes(model, data)
    config = xlnet.load_config(model)
    config.data.seq_len = _READ
    tokenizer = xlnet.load_tokenizer(model)
    require_windows(config, tokenizer, texts, "the words before its last one")
    scorer = xlnet.Scorer(xlnet.load_pretrainer(model, config), tokenizer)
    return {
        "steps": steps,
        "cpu_seconds": cpu_seconds,
        "loss": float(sums.sum() / sizes.sum()),
        "of_lanes": sums.round(2).tolist(),
        "sizes": sizes.tolist(),
        "of_passages": losses_by_context(scorer, texts, _LENGTHS).round(2).tolist(),
    }


def passages(output: str) -> list[str]:
    """Consecutive words of held-out documents, one more than the longest context, evenly chosen."""
    tokenizer = Tokenizer(os.path.join(output, "vocab", VOCAB_FILE))
    size = max(_LENGTHS) + 1
    found = []
    for document in heldout_documents(os.path.join(output, "forward")):
        words = tokenizer.decode(document.tolist()).split()
        found += [words[n : n + size] for n in range(0, len(words) - size + 1, size)]
    chosen = np.linspace(0, len(found) - 1, min(_MOST_PASSAGES, len(found))).astype(int)
    return [" ".join(found[n]) for n in chosen]


def _lanes(model_dir: str, data_dir: str) -> tuple[np.ndarray, np.ndarray]:
    """Loss in nats and number of targets of each held-out lane, float64 [lanes]."""
    import tensorflow as tf

    from benchmarks.learning.common import model_with
    from official.xlnet.data.pretraining_dataset import Records

    size = Records(data_dir).largest_batch("heldout", 64)
    model = model_with(model_dir, batch_size=size)

    @tf.function(autograph=False)
    def read(batch):
        task = model.make_permutation(batch)
        task.inputs.update(model.memory_inputs(batch))
        outputs = model(task.inputs, training=False)
        model.update_memory(outputs, batch)
        loss_BP = tf.nn.sparse_softmax_cross_entropy_with_logits(task.labels_BP, outputs["logits"])
        weight_BP = tf.cast(task.mask_BP, loss_BP.dtype)
        return tf.reduce_sum(loss_BP * weight_BP, axis=1), tf.reduce_sum(weight_BP, axis=1)

    batches = xlnet.pretraining_dataset(data_dir, size, "heldout", epochs=1)
    found = np.array([[x.numpy() for x in read(batch)] for batch in batches], float)
    sums, sizes = found.sum(axis=0)
    return sums, sizes


def context_lengths(run: Mapping[str, Any], texts: np.ndarray | None = None) -> dict[str, int]:
    """Relative effective context of each row of a run, in words.

    Args:
      run: result of a seed.
      texts: numbers of the passages; default: all.
    """
    from official.xlnet.projects.any_order.context_length import relative_context_lengths

    losses = {name: np.array(row["of_passages"]) for name, row in run["rows"].items()}
    if texts is not None:
        losses = {name: values[:, texts] for name, values in losses.items()}
    return relative_context_lengths(losses, run["lengths"])


def tables(runs: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Formats losses and effective contexts, and what memory is ahead by."""
    lengths = runs[0]["lengths"]
    contexts = [context_lengths(run) for run in runs]
    columns = ["loss, nats per target"]
    columns += [f"last word after {lengths[n]}, nats" for n in _SHOWN]
    columns.append("effective context, words")
    rows = [["", "steps", "CPU-seconds", *columns]]
    for name, (title, *_) in ROWS.items():
        found = [run["rows"][name] for run in runs]
        seconds = [row["cpu_seconds"] for row in found if row["cpu_seconds"]]
        cells = [mean_and_interval(seconds, 0), mean_and_interval([row["loss"] for row in found])]
        cells += [mean_and_interval([_last(row, n).mean() for row in found], 2) for n in _SHOWN]
        words = [context[name] for context in contexts]
        capped = words.count(lengths[-1])
        cap = f", {capped} of {len(words)} at the cap of {lengths[-1]}" if capped else ""
        rows.append([title, found[0]["steps"], *cells, mean_and_interval(words, 1) + cap])
    others = [name for name in ROWS if name != "with"]
    differences = [
        each
        for name in others
        for each in (
            _ahead_in_loss(runs, name),
            *(_ahead_in_last_words(runs, name, n) for n in _SHOWN),
            _ahead_in_context(runs, name),
        )
    ]
    compared = iter(with_verdicts(differences))
    lines = [[ROWS[name][0], *itertools.islice(compared, len(columns))] for name in others]
    verdicts = [["with memory, against", *columns], *lines]
    return {"memory": markdown_table(rows), "memory_differences": markdown_table(verdicts)}


def _last(row: Mapping[str, Any], length: int) -> np.ndarray:
    """Loss of the last word of each passage after the context of a number, in nats."""
    return np.array(row["of_passages"][length], float)


def _ahead_in_loss(runs: Sequence[dict[str, Any]], name: str) -> Difference:
    """What memory lowers the loss by; its error is of seeds and held-out lanes."""
    pairs = [(run["rows"]["with"], run["rows"][name]) for run in runs]
    values = [theirs["loss"] - ours["loss"] for ours, theirs in pairs]
    sums = np.array([[row["of_lanes"] for row in pair] for pair in pairs])
    lanes = over_texts(sums, np.array([ours["sizes"] for ours, _ in pairs]))
    return difference(float(np.mean(values)), over_runs(values), lanes)


def _ahead_in_last_words(runs: Sequence[dict[str, Any]], name: str, length: int) -> Difference:
    """What memory lowers the loss of last words by; its error is of seeds and passages."""
    values = np.array(
        [_last(run["rows"][name], length) - _last(run["rows"]["with"], length) for run in runs]
    )
    sources = over_runs(values.mean(axis=1)), over_runs(values.mean(axis=0))
    return difference(float(values.mean()), *sources)


def _ahead_in_context(runs: Sequence[dict[str, Any]], name: str) -> Difference:
    """What memory lengthens the context by; its error is of seeds and (bootstrap) of passages."""

    def gains(texts: np.ndarray | None = None) -> list[int]:
        contexts = [context_lengths(run, texts) for run in runs]
        return [context["with"] - context[name] for context in contexts]

    number = len(runs[0]["rows"][name]["of_passages"][0])
    random = np.random.default_rng(0)
    draws = [np.mean(gains(random.integers(number, size=number))) for _ in range(_RESAMPLES)]
    of_passages = float(np.var(draws, ddof=1)), number - 1
    return difference(float(np.mean(gains())), over_runs(gains()), of_passages)


if __name__ == "__main__":
    main()
