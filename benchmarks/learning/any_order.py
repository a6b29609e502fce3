"""Partial prediction, diffusion and left to right: one network, by the order that it is read in.

    python -m benchmarks.learning.any_order --text=FILE --output=DIR --document=docs/any_order.md

Trains the network of configs/ablation by permutation language modeling with K = 1, 2, 6 and 7, by
absorbing diffusion and from left to right, in equal compute; permutations with an equal number of
targets, too; and with K = 1 a network of one layer, for the consistency of orders. Texts of every
tenth document, which training does not see, are read in several orders. Finished runs are kept,
interrupted ones resume.
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

from benchmarks.harness.command_line import flag, repeated
from benchmarks.harness.tables import markdown_table
from benchmarks.harness.verdicts import (
    Difference,
    difference,
    half_interval,
    mean_and_interval,
    over_runs,
    with_verdicts,
)
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
from official.xlnet.inference.scoring_windows import window_length

# Of "permutation, K = 6"; other rows take as many as cost the same, or have as many targets.
_STEPS = 1600
_FORWARD = ("objective.kind=causal", "model.attention_type=uni", "data.bidirectional=false")
_SPAN = 8  # Tokens in the middle of a text that are filled in.
_PASSES = (1, 2, 4, 8)
_NUM_ORDERS = 4
_CONTEXTS = range(4, 33, 4)  # Words before a word, for the effective context length.
_PERMUTED = ("k1", "k2")  # Rows with as many targets as K = 6, too; K = 7 nearly has them.


class Row(NamedTuple):
    """A way to train.

    Attributes:
      title: how the tables call it.
      recipe: file name in configs/ablation.
      settings: what differs from the recipe.
      cost: CPU time of a step, relative to that of K = 6; 0: costs are not compared.
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
    "shallow": Row("permutation, K = 1, one layer", "xlnet_k1", ("model.num_layers=1",), cost=0.0),
}


def _even(steps: float) -> int:
    return 10 * round(steps / 10)


_EQUAL_COMPUTE = {name: _even(_STEPS / row.cost) for name, row in ROWS.items() if row.cost}
_EQUAL_STEPS = {"shallow": _EQUAL_COMPUTE["k1"]}
_READINGS = {
    "left_to_right": "left to right, bits per byte",
    "random": "random orders, bits per byte",
    "span": "span, nats per token",
    "pseudo": "single tokens, nats",
}
_AGREEMENT = {"deviation": "deviation, nats", "halves_gap": "gap of halves, nats"}


def main() -> None:
    flags = parse_experiment(
        __doc__,
        text=TEXT,
        rows=flag(list(ROWS), "rows to train"),
        seeds=SEEDS,
        minutes=MINUTES,
        set=SET,
        texts=flag(200, "number of texts to read"),
        finetune=repeated("TRAIN,DEV: tables to fine-tune on, in a folder named as the data set"),
    )
    deadline = time.monotonic() + 60 * flags.minutes
    training_text, *heldout = split(flags.text, flags.output, flags.texts)
    ablation.prepare_data(training_text, flags.output, flags.set)
    for seed in range(flags.seeds):
        for name, steps in runs_of(flags.rows):
            path = os.path.join(flags.output, "runs", f"{name}-{steps}-{seed}.json")
            if time.monotonic() < deadline or os.path.exists(path):
                recipe = ablation.recipe_of(ROWS[name].recipe)
                kept(path, lambda: _run(flags, name, steps, seed, *heldout), recipe)  # noqa: B023
    runs = with_context_lengths(ablation.read_results(flags.output))
    if flags.document:
        publish(flags.document, "readings", runs, tables(runs))
    print(json.dumps({"runs": len(runs)}))


def runs_of(rows: Sequence[str]) -> list[tuple[str, int]]:
    """Pairs of a row and its number of steps: at equal compute or steps, and equal targets."""
    targets = _num_predict("k6")
    found = [(name, (_EQUAL_COMPUTE | _EQUAL_STEPS)[name]) for name in rows]
    permuted = [name for name in rows if name in _PERMUTED]
    found += [(name, _even(_STEPS * targets / _num_predict(name))) for name in permuted]
    return list(dict.fromkeys(found))


def _num_predict(row: str) -> int:
    return ablation.configuration(ROWS[row].recipe, [*ROWS[row].settings]).data.num_predict


def split(text: str, output: str, number: int) -> tuple[str, list[str], list[str]]:
    """Takes every tenth document out of a text.

    Args:
      text: file with a paragraph a line and a blank line between documents.
      output: directory of the rest.
      number: number of texts of each kind.

    Returns:
      The path of the rest, and of the other documents `number` sentences of 60 to 140 characters,
      and the first words of as many paragraphs, enough for `_CONTEXTS`.
    """
    with open(text, encoding="utf-8") as file:
        documents = file.read().split("\n\n")
    path = os.path.join(output, "text.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n\n".join(d for n, d in enumerate(documents) if n % 10))
    lines = "\n".join(documents[::10]).splitlines()
    sentences = [
        sentence.strip() + "."
        for line in lines
        for sentence in line.rstrip(".").split(". ")
        if 60 <= len(sentence.strip()) < 140
    ]
    most = _CONTEXTS[-1]
    passages = [" ".join(line.split()[: most + 1]) for line in lines if len(line.split()) > most]
    sentences, passages = (
        [texts[n] for n in sorted(np.random.default_rng(0).permutation(len(texts))[:number])]
        for texts in (sentences, passages)
    )
    return path, sentences, passages


def _run(
    flags: Any, name: str, steps: int, seed: int, texts: Sequence[str], passages: Sequence[str]
) -> dict[str, Any]:
    """Trains one row with one seed, and reads the texts and passages with it."""
    from official.xlnet.projects.any_order.context_length import losses_by_context

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
    scorer = xlnet.Scorer(xlnet.load_pretrainer(model_dir), xlnet.load_tokenizer(model_dir))
    result |= readings(scorer, texts, is_causal=name == "causal")
    result["contexts"] = losses_by_context(scorer, passages, _CONTEXTS).round(4).tolist()
    if name != "causal":
        result |= agreement(scorer, texts, window_length(config))
    for tables in (pair.split(",") for pair in flags.finetune if row.cost):
        task = os.path.basename(os.path.dirname(os.path.abspath(tables[0])))
        overrides = [*ablation.FINETUNING, f"training.seed={seed}"]
        result[f"accuracy, {task}"] = accuracy(model_dir, tables, f"{model_dir}-{task}", overrides)
    return result


def readings(scorer: xlnet.Scorer, texts: Sequence[str], is_causal: bool) -> dict[str, Any]:
    """Likelihoods of texts in several orders, and of spans by the number of passes that fill them.

    A span is the `_SPAN` tokens in the middle of a text. In n passes, each pass predicts the same
    number of its tokens, in a random order that all models share, from those before and the text
    around it, and independently of each other, as `unmask` draws them. A causal model
    sees what is on the left, and reads a token a pass.

    Returns:
      `left_to_right`, `random`: bits per byte of whole texts. `pseudo`, `span`: nats per token;
      `span` is `passes` with one token a pass. `passes`: {number of passes: nats per token}.
    """
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


def agreement(scorer: xlnet.Scorer, texts: Sequence[str], window: int) -> dict[str, float]:
    """Fields of `Consistency`, in nats: means over the texts of at most `window` tokens."""
    from official.xlnet.projects.any_order.consistency import consistency, mean_consistency

    short = [score.text for score in scorer(texts) if len(score.pieces) <= window]
    means = mean_consistency(consistency(scorer, short))
    del means["compared_texts"]
    return means


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


def with_context_lengths(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Replaces losses by context with effective lengths, relative to other rows of the seed."""
    from official.xlnet.projects.any_order.context_length import relative_context_lengths

    losses = [run.pop("contexts", None) for run in runs]
    for seed in {run["seed"] for run in runs}:
        group = {
            run["row"]: (run, table)
            for run, table in zip(runs, losses, strict=True)
            if table and run["seed"] == seed and run["steps"] == _EQUAL_COMPUTE.get(run["row"])
        }
        tables = {row: table for row, (_, table) in group.items()}
        for row, length in relative_context_lengths(tables, _CONTEXTS).items():
            group[row][0]["context"] = length
    return runs


def tables(runs: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Formats the readings of each row, at equal compute and with equal targets."""
    return {
        "equal_compute": _readings(runs, _EQUAL_COMPUTE),
        "equal_targets": _readings(runs, dict(runs_of(_PERMUTED))),
        "differences": _differences(_of(runs, _EQUAL_COMPUTE)),
        "consistency": _consistency(runs),
    }


def passes(runs: Sequence[dict[str, Any]]) -> dict[str, dict[str, tuple[float, float]]]:
    """Loss of spans at equal compute, for the picture.

    Returns:
      {title of a row: {number of passes: mean in nats per token, and half of its interval}}.
    """
    lines: dict[str, dict[str, tuple[float, float]]] = {}
    for name, found in _of(runs, _EQUAL_COMPUTE).items():
        values = {number: [run["passes"][number] for run in found] for number in found[0]["passes"]}
        means = {number: (float(np.mean(x)), half_interval(x)) for number, x in values.items()}
        lines[ROWS[name].title] = means
    return lines


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


def _consistency(runs: Sequence[dict[str, Any]]) -> str:
    """How far the orders of a text are from each other, by K, training length and size."""
    lines = [["", "steps", *_AGREEMENT.values(), "effective context, words"]]
    for name, steps in runs_of(list(ROWS)):
        if found := [run for run in runs if (run["row"], run["steps"]) == (name, steps)]:
            cells = [_mean(found, key, 1) for key in (*_AGREEMENT, "context")]
            lines.append([ROWS[name].title, str(steps), *cells])
    return markdown_table(lines)


def _mean(runs: Sequence[dict[str, Any]], key: str, digits: int = 3) -> str:
    return mean_and_interval([run[key] for run in runs], digits) if key in runs[0] else "–"


def _of(runs: Sequence[dict[str, Any]], steps: Mapping[str, int]) -> dict[str, list[dict]]:
    of_rows = {n: [r for r in runs if (r["row"], r["steps"]) == (n, steps[n])] for n in steps}
    return {name: found for name, found in of_rows.items() if found}


def _readings(runs: Sequence[dict[str, Any]], steps: Mapping[str, int]) -> str:
    rows = _of(runs, steps)
    measured = dict.fromkeys(key for found in rows.values() for run in found for key in run)
    columns = {key: title for key, title in _READINGS.items() if key in measured}
    columns |= {key: key for key in measured if key.startswith("accuracy")}
    lines = [["", "steps", *columns.values()]]
    for name, found in rows.items():
        cells = [_mean(found, key) for key in columns]
        lines.append([ROWS[name].title, str(steps[name]), *cells])
    return markdown_table(lines)


if __name__ == "__main__":
    main()
