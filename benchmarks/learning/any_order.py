"""Partial prediction, diffusion and left to right: one network, by the order that it is read in.

    python -m benchmarks.learning.any_order --text=FILE --output=DIR --document=docs/any_order.md

Trains the network of configs/ablation by permutation language modeling with K = 1, 2, 6 and 7, by
absorbing diffusion and from left to right, in equal compute, and for permutations with an equal
number of targets as well. Texts of every tenth document, which training does not see, are read in
several orders. Finished runs are kept, interrupted ones resume.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness.command_line import flag
from benchmarks.harness.tables import markdown_table, mean_and_spread
from benchmarks.harness.verdicts import Difference, difference, over_runs, with_verdicts
from benchmarks.learning import ablation
from benchmarks.learning.common import (
    MINUTES,
    SEEDS,
    SET,
    TEXT,
    accuracy,
    kept,
    parse_experiment,
    publish,
)
from official import xlnet

_STEPS = (
    400  # Of "XLNet, K = 6"; other rows take as many as cost the same, or have as many targets.
)
_FORWARD = ("objective.kind=causal", "model.attention_type=uni", "data.bidirectional=false")
_SPAN = 8  # Tokens in the middle of a text that are filled in.
_PASSES = (1, 2, 4, 8)
_NUM_ORDERS = 4
_PERMUTED = ("k1", "k2", "k6")  # Rows with as many targets, too; K = 7 has nearly those of K = 6.


class Row(NamedTuple):
    """A way to train.

    Attributes:
      title: how the tables call it.
      recipe: file name in configs/ablation.
      settings: what differs from the recipe.
      cost: CPU time of a step, relative to that of K = 6.
    """

    title: str
    recipe: str
    settings: tuple[str, ...] = ()
    cost: float = 1.0


ROWS = {
    "k1": Row("permutation, K = 1", "xlnet_k1", cost=1.5),
    "k2": Row("permutation, K = 2", "xlnet_k2", cost=1.2),
    "k6": Row("permutation, K = 6", "xlnet_k6"),
    "k7": Row("permutation, K = 7", "xlnet_k7"),
    "diffusion": Row("absorbing diffusion", "absorbing_diffusion"),
    "causal": Row("left to right", "xlnet_k6", _FORWARD, cost=0.6),
}
_READINGS = {
    "left_to_right": "left to right, bits per byte",
    "random": "random orders, bits per byte",
    "span": "span given both sides, nats per token",
    "pseudo": "single tokens, nats",
}


def main() -> None:
    flags = parse_experiment(
        __doc__,
        text=TEXT,
        rows=flag(list(ROWS), "rows to train"),
        seeds=SEEDS,
        minutes=MINUTES,
        set=SET,
        texts=flag(200, "number of texts to read"),
        finetune=flag(None, "TRAIN,DEV: labeled tables to fine-tune on"),
    )
    deadline = time.monotonic() + 60 * flags.minutes
    training_text, texts = split(flags.text, flags.output, flags.texts)
    ablation.prepare_data(training_text, flags.output, flags.set)
    for seed in range(flags.seeds):
        for name, steps in runs_of(flags.rows):
            path = os.path.join(flags.output, "runs", f"{name}-{steps}-{seed}.json")
            if time.monotonic() < deadline or os.path.exists(path):
                recipe = ablation.recipe_of(ROWS[name].recipe)
                kept(path, lambda: _run(flags, name, steps, seed, texts), recipe)  # noqa: B023
    runs = ablation.read_results(flags.output)
    if flags.document:
        publish(flags.document, "readings", runs, tables(runs))
    print(json.dumps({"runs": len(runs)}))


def runs_of(rows: Sequence[str]) -> list[tuple[str, int]]:
    """Pairs of a row and its number of steps: at equal compute, and with as many targets."""
    targets = _num_predict("k6")
    found = [(name, _even(_STEPS / ROWS[name].cost)) for name in rows]
    permuted = [name for name in rows if name in _PERMUTED]
    found += [(name, _even(_STEPS * targets / _num_predict(name))) for name in permuted]
    return list(dict.fromkeys(found))


def _num_predict(row: str) -> int:
    return ablation.configuration(ROWS[row].recipe, [*ROWS[row].settings]).data.num_predict


def _even(steps: float) -> int:
    return 10 * round(steps / 10)


def split(text: str, output: str, number: int) -> tuple[str, list[str]]:
    """Takes every tenth document out of a text.

    Args:
      text: file with a paragraph a line and a blank line between documents.
      output: directory of the rest.
      number: number of texts.

    Returns:
      The path of the rest, and `number` sentences of 60 to 140 characters of the other documents.
    """
    with open(text, encoding="utf-8") as file:
        documents = file.read().split("\n\n")
    path = os.path.join(output, "text.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n\n".join(d for n, d in enumerate(documents) if n % 10))
    sentences = [
        sentence.strip() + "."
        for line in "\n".join(documents[::10]).splitlines()
        for sentence in line.rstrip(".").split(". ")
        if 60 <= len(sentence.strip()) < 140
    ]
    chosen = np.random.default_rng(0).permutation(len(sentences))[:number]
    return path, [sentences[n] for n in sorted(chosen)]


def _run(flags: Any, name: str, steps: int, seed: int, texts: Sequence[str]) -> dict[str, Any]:
    """Trains one row with one seed, and reads the texts with it."""
    print(f"{name}, {steps} steps, seed {seed}", file=sys.stderr, flush=True)
    row = ROWS[name]
    settings = [*row.settings, *flags.set, f"num_steps={steps}", f"warmup_steps={steps // 10}"]
    config = ablation.configuration(row.recipe, settings, seed)
    data = os.path.join(flags.output, "both" if config.data.bidirectional else "forward")
    model_dir = os.path.join(flags.output, "models", f"{name}-{steps}-{seed}")
    start = time.process_time()
    xlnet.pretrain(config, data, model_dir)
    result = {"row": name, "seed": seed, "steps": steps}
    result["targets"] = steps * config.training.batch_size * config.data.num_predict
    result["cpu_seconds"] = round(time.process_time() - start, 1)
    result |= readings(model_dir, texts, is_causal=name == "causal")
    if flags.finetune:
        tables = flags.finetune.split(",")
        overrides = [*ablation.FINETUNING, f"training.seed={seed}"]
        result["finetuned"] = accuracy(model_dir, tables, f"{model_dir}-finetuned", overrides)
    return result


def readings(model_dir: str, texts: Sequence[str], is_causal: bool) -> dict[str, Any]:
    """Likelihoods of texts in several orders, and of spans by the number of passes that fill them.

    A span is the `_SPAN` tokens in the middle of a text. In n passes, each pass predicts the same
    number of its tokens, in a random order that all models share, from those before and the text
    around it, and independently of each other, as `generate --steps` draws them. A causal model
    sees what is on the left, and reads a token a pass.

    Returns:
      `left_to_right`, `random`: bits per byte of whole texts. `pseudo`, `span`: nats per token;
      `span` is `passes` with one token a pass. `passes`: {number of passes: nats per token}.
    """
    scorer = xlnet.Scorer(xlnet.load_pretrainer(model_dir), xlnet.load_tokenizer(model_dir))
    num_bytes = sum(len(text.encode()) for text in texts)
    found: dict[str, Any] = {}
    for order in ("left_to_right",) if is_causal else ("left_to_right", "random", "pseudo"):
        scores = scorer(texts, order, _NUM_ORDERS)
        total = -sum(score.total for score in scores)
        tokens = sum(len(score.pieces) for score in scores)
        found[order] = float(total / tokens if order == "pseudo" else total / np.log(2) / num_bytes)
    of_texts = [(score.text, score.offsets) for score in scorer(texts)]
    # A lone word mark is a token without characters, which a span cannot name.
    named = [(text, spans) for text, spans in of_texts if all(a < b for a, b in spans)]
    found["passes"] = {
        passes: float(np.mean(_span_losses(scorer, named, passes, is_causal)))
        for passes in (_PASSES[-1:] if is_causal else _PASSES)
    }
    return found | {"span": found["passes"][_SPAN]}


def _span_losses(
    scorer: xlnet.Scorer,
    texts: Sequence[tuple[str, Sequence[tuple[int, int]]]],
    passes: int,
    is_causal: bool,
) -> np.ndarray:
    """Negative log-likelihood of each token of each span, [texts, _SPAN]; texts with offsets."""
    step = np.arange(_SPAN) // (_SPAN // passes)
    scored, given, targets = [], [], []
    for number, (text, spans) in enumerate(texts):
        first = (len(spans) - _SPAN) // 2
        middle, after = spans[first : first + _SPAN], spans[first + _SPAN :]
        draw = np.random.default_rng(number).permutation(_SPAN)
        pass_of = step if is_causal else step[draw]
        for token, span in enumerate(middle):
            known = [s for s, n in zip(middle, pass_of, strict=True) if n < pass_of[token]]
            scored.append(text)
            given.append([*spans[:first], *known, *([] if is_causal else after)])
            targets.append([span])
    scores = scorer.score(scored, given=given, targets=targets, whole_given=not is_causal)
    return -np.array([score.total for score in scores]).reshape(len(texts), _SPAN)


def tables(runs: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Formats the readings of each row, at equal compute and with equal targets, and the spans."""
    pairs = runs_of(list(ROWS))
    first, targets = dict(pairs[::-1]), dict(pairs)
    compute = {name: first[name] for name in ROWS}
    return {
        "equal_compute": _readings(runs, compute),
        "equal_targets": _readings(runs, {name: targets[name] for name in _PERMUTED}),
        "differences": _differences(_of(runs, compute)),
        "passes": _passes(runs, compute),
    }


def _differences(runs: Mapping[str, Sequence[dict]]) -> str:
    """What "permutation, K = 1" is ahead of other rows by, in equal compute, paired by seed."""
    names = [name for name in runs if name != "k1"]
    columns = [[_difference(runs, name, reading) for reading in _READINGS] for name in names]
    cells = iter(with_verdicts([*itertools.chain(*columns)]))
    lines = [[ROWS[name].title, *itertools.islice(cells, len(_READINGS))] for name in names]
    return markdown_table([["permutation, K = 1, against", *_READINGS.values()], *lines])


def _difference(runs: Mapping[str, Sequence[dict]], name: str, reading: str) -> Difference | None:
    theirs = {run["seed"]: run[reading] for run in runs[name] if reading in run}
    values = [theirs[r["seed"]] - r[reading] for r in runs.get("k1", ()) if r["seed"] in theirs]
    return difference(np.mean(values), over_runs(values)) if values else None


def _of(runs: Sequence[dict[str, Any]], steps: Mapping[str, int]) -> dict[str, list[dict]]:
    of_rows = {n: [r for r in runs if (r["row"], r["steps"]) == (n, steps[n])] for n in steps}
    return {name: found for name, found in of_rows.items() if found}


def _readings(runs: Sequence[dict[str, Any]], steps: Mapping[str, int]) -> str:
    has_accuracy = any("finetuned" in run for run in runs)
    columns = _READINGS | ({"finetuned": "accuracy after fine-tuning"} if has_accuracy else {})
    lines = [["", "seeds", "steps", *columns.values(), "CPU-seconds"]]
    for name, found in _of(runs, steps).items():
        cells = [
            mean_and_spread([run[key] for run in found]) if key in found[0] else "–"
            for key in columns
        ]
        seconds = mean_and_spread([run["cpu_seconds"] for run in found], 0)
        lines.append([ROWS[name].title, str(len(found)), str(steps[name]), *cells, seconds])
    return markdown_table(lines)


def _passes(runs: Sequence[dict[str, Any]], steps: Mapping[str, int]) -> str:
    lines = [["nats per token after", "1 pass", *(f"{n} passes" for n in _PASSES[1:])]]
    for name, found in _of(runs, steps).items():
        values = [[r["passes"].get(str(n)) for r in found] for n in _PASSES]
        lines.append([ROWS[name].title, *(mean_and_spread(v) if v[0] else "–" for v in values)])
    return markdown_table(lines)


if __name__ == "__main__":
    main()
