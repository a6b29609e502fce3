"""Partial prediction, diffusion and left to right: one network, by the order that it is read in.

    python -m benchmarks.learning.any_order --text=FILE --output=DIR --document=docs/experiments.md

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
from official.xlnet.tasks.reports import PREDICTIONS_FILE

# What results depend on besides training and recipes; see `harness.sources`.
CODE = (
    "benchmarks.learning.any_order:_run",
    "benchmarks.learning.any_order:split",
    "benchmarks.learning.ablation:prepare_data",
    "official.xlnet.inference.scoring",
    "official.xlnet.modeling.models.xlnet_classifier",
    "official.xlnet.modeling.objectives.causal_lm",
    "official.xlnet.projects.any_order.consistency",
)

# Of "permutation, K = 6"; other rows take as many as cost the same, or have as many targets.
_STEPS = 1600
_FORWARD = ("objective.kind=causal", "model.attention_type=uni", "data.bidirectional=false")
_SPAN = 8  # Tokens in the middle of a text that are filled in.
_PASSES = (1, 2, 4, 8)
_NUM_ORDERS = 4
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
    "causal": Row("causal model", "xlnet_k6", _FORWARD, cost=0.6),
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
    "pseudo": "pseudo-log-likelihood, nats per token",
}
_ACCURACY = "accuracy, "  # Readings that begin so are better if higher.
_AGREEMENT = {"deviation": "deviation, nats", "halves_gap": "gap of halves, nats"}


def main() -> None:
    flags = parse_experiment(
        __doc__,
        CODE,
        text=TEXT,
        rows=flag(list(ROWS), "rows to train"),
        seeds=SEEDS,
        minutes=MINUTES,
        set=SET,
        texts=flag(200, "number of texts to read"),
        finetune=repeated("TRAIN,DEV: tables to fine-tune on, in a folder named as the data set"),
    )
    deadline = time.monotonic() + 60 * flags.minutes
    training_text, texts = split(flags.text, flags.output, flags.texts)
    ablation.prepare_data(training_text, flags.output, flags.set)
    for seed in range(flags.seeds):
        for name, steps in runs_of(flags.rows):
            path = os.path.join(flags.output, "runs", f"{name}-{steps}-{seed}.json")
            if time.monotonic() < deadline or os.path.exists(path):
                recipe = ablation.recipe_of(ROWS[name].recipe)
                kept(path, lambda: _run(flags, name, steps, seed, texts), recipe, code=CODE)  # noqa: B023
    runs = ablation.read_results(flags.output)
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


def split(text: str, output: str, number: int) -> tuple[str, list[str]]:
    """Takes every tenth document out of a text.

    Args:
      text: file with a paragraph a line and a blank line between documents.
      output: directory of the rest.
      number: number of texts.

    Returns:
      The path of the rest, and `number` sentences of the other documents, of 60 to 140 characters.
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
    chosen = sorted(np.random.default_rng(0).permutation(len(sentences))[:number])
    return path, [sentences[n] for n in chosen]


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
    result: dict[str, Any] = {"row": name, "seed": seed, "steps": steps}
    result["targets"] = steps * config.training.batch_size * config.data.num_predict
    result["cpu_seconds"] = round(time.process_time() - start, 1)
    scorer = xlnet.Scorer(xlnet.load_pretrainer(model_dir), xlnet.load_tokenizer(model_dir))
    result |= readings(scorer, texts, is_causal=name == "causal")
    if name != "causal":
        result |= agreement(scorer, texts, window_length(config))
    for tables in (pair.split(",") for pair in flags.finetune if row.cost):
        task = os.path.basename(os.path.dirname(os.path.abspath(tables[0])))
        overrides = [*ablation.FINETUNING, f"training.seed={seed}"]
        output = f"{model_dir}-{task}"
        result[_ACCURACY + task] = accuracy(model_dir, tables, output, overrides)
        with open(os.path.join(output, PREDICTIONS_FILE), encoding="utf-8") as file:
            result.setdefault("examples", {})[task] = sum(1 for _ in file)
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
      `of_texts`: {reading: [[sum, size] of each text]}, of which readings are the ratios.
    """
    found: dict[str, Any] = {"of_texts": {}}
    for order in ("left_to_right",) if is_causal else ("left_to_right", "random", "pseudo"):
        pairs = []
        for score in scorer(texts, order, _NUM_ORDERS):
            if order == "pseudo":
                pairs.append([-score.total, len(score.pieces)])
            else:
                pairs.append([-score.total / np.log(2), len(score.text.encode())])
        found["of_texts"][order] = np.round(pairs, 4).tolist()
        total, size = np.sum(pairs, axis=0)
        found[order] = float(total / size)
    of_texts = [(score.text, score.offsets) for score in scorer(texts)]
    # A lone word mark is a token without characters, which a span cannot name.
    named = [(text, spans) for text, spans in of_texts if all(a < b for a, b in spans)]
    found["passes"] = {}
    for passes in _PASSES[-1:] if is_causal else _PASSES:
        losses = _span_losses(scorer, named, passes, is_causal)
        found["passes"][passes] = float(losses.mean())
        if passes == _SPAN:
            sums = losses.sum(axis=1).round(4).tolist()
            found["of_texts"]["span"] = [[total, _SPAN] for total in sums]
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


def tables(runs: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Formats the readings of each row at equal compute, and the consistency of all runs."""
    return {
        "equal_compute": _readings(runs, _EQUAL_COMPUTE),
        "differences": _differences(_of(runs, _EQUAL_COMPUTE), "k1"),
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


def _differences(runs: Mapping[str, Sequence[dict]], base: str) -> str:
    """What a row is ahead of the others by, in every reading that is printed, paired by seed."""
    names = [name for name in runs if name != base]
    columns = _columns(runs)
    differences = [_difference(runs, base, name, key) for name in names for key in columns]
    cells = iter(with_verdicts(differences))
    lines = [[ROWS[name].title, *itertools.islice(cells, len(columns))] for name in names]
    return markdown_table([[f"{ROWS[base].title}, against", *columns.values()], *lines])


def _difference(
    runs: Mapping[str, Sequence[dict]], base: str, name: str, reading: str
) -> Difference | None:
    """What a row is ahead of another by; its error is of seeds and, if on file, of texts."""
    theirs = {run["seed"]: run for run in runs[name] if reading in run}
    pairs = [(run, theirs[run["seed"]]) for run in runs.get(base, ()) if run["seed"] in theirs]
    pairs = [(ours, other) for ours, other in pairs if reading in ours]
    if not pairs:
        return None
    values = [other[reading] - ours[reading] for ours, other in pairs]
    if reading.startswith(_ACCURACY):
        task = reading.removeprefix(_ACCURACY)
        shares = np.mean([[ours[reading], other[reading]] for ours, other in pairs], axis=0)
        sources = [over_examples(shares, ours["examples"][task]) for ours, _ in pairs[:1]]
        return difference(-np.mean(values), over_runs(values), *sources)
    of_texts = [[run.get("of_texts", {}).get(reading) for run in pair] for pair in pairs]
    if not all(all(pair) for pair in of_texts):
        return difference(np.mean(values), over_runs(values))
    return difference(np.mean(values), over_runs(values), over_texts(np.array(of_texts)))


def over_examples(shares: np.ndarray, number: int) -> tuple[float, int]:
    """Variance of a difference of two accuracies due to the examples, and its degrees of freedom.

    As if both were of other examples, which is an upper bound, as which are right is not on file.
    """
    return float(np.sum(shares * (1 - shares)) / number), number - 1


def over_texts(pairs: np.ndarray) -> tuple[float, int]:
    """Variance of a difference of two ratios due to the texts, and its degrees of freedom.

    Args:
      pairs: float64 [seeds, 2, texts, 2], a sum and a size of each text, in each of two rows.
    """
    sums_T = (pairs[:, 1, :, 0] - pairs[:, 0, :, 0]).mean(axis=0)
    sizes_T = pairs[0, 0, :, 1]
    errors_T = (sums_T - sizes_T * sums_T.sum() / sizes_T.sum()) / sizes_T.mean()
    return over_runs(errors_T)


def _consistency(runs: Sequence[dict[str, Any]]) -> str:
    """How far the orders of a text are from each other, by K, training length and size."""
    lines = [["", "steps", *_AGREEMENT.values()]]
    for name, steps in runs_of(list(ROWS)):
        if found := [run for run in runs if (run["row"], run["steps"]) == (name, steps)]:
            cells = [_mean(found, key, 1) for key in _AGREEMENT]
            lines.append([ROWS[name].title, str(steps), *cells])
    return markdown_table(lines)


def _mean(runs: Sequence[dict[str, Any]], key: str, digits: int = 3) -> str:
    return mean_and_interval([run[key] for run in runs], digits) if key in runs[0] else "–"


def _of(runs: Sequence[dict[str, Any]], steps: Mapping[str, int]) -> dict[str, list[dict]]:
    of_rows = {n: [r for r in runs if (r["row"], r["steps"]) == (n, steps[n])] for n in steps}
    return {name: found for name, found in of_rows.items() if found}


def _columns(rows: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, str]:
    """The readings that some row has, and their titles."""
    measured = dict.fromkeys(key for found in rows.values() for run in found for key in run)
    columns = {key: title for key, title in _READINGS.items() if key in measured}
    return columns | {key: key for key in measured if key.startswith(_ACCURACY)}


def _readings(runs: Sequence[dict[str, Any]], steps: Mapping[str, int]) -> str:
    rows = _of(runs, steps)
    columns = _columns(rows)
    lines = [["", "steps", *columns.values()]]
    for name, found in rows.items():
        cells = [_mean(found, key) for key in columns]
        lines.append([ROWS[name].title, str(steps[name]), *cells])
    return markdown_table(lines)


if __name__ == "__main__":
    main()
