"""Partial prediction, diffusion and left to right: one network, by the order that it is read in.

    python -m benchmarks.learning.any_order --text=FILE --output=DIR --document=docs/experiments.md

Trains the network of configs/ablation by permutation language modeling with K = 1, 2 and 6, by
absorbing diffusion and from left to right, in equal compute: with an order of the whole window and
no memory in any row, and as the recipes do, with orders in halves of a window and memory; and
permutations with an equal number of targets. Each row's learning rate is the best of `--rates` in a
third of the steps, by its own loss on the held-out windows of the training text. Texts of every
tenth document, which training does not see, are read in several orders. Finished runs are kept,
interrupted ones resume.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
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
    over_texts,
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
    train,
)
from official import xlnet
from official.xlnet.tasks.reports import PREDICTIONS_FILE

_FORWARD = ("objective.kind=causal", "model.attention_type=uni", "data.bidirectional=false")
_SPAN = 8  # Tokens in the middle of a text that are filled in.
_PASSES = (1, 2, 4, 8)
_TOKENS = range(25, 33)  # Lengths of the texts, in one window: one graph reads them all.
_NUM_ORDERS = 4
_PERMUTED = ("k1", "k2")  # Rows with as many targets as K = 6, too.
_COMPUTE, _TARGETS = "compute", "targets"  # What a row has as much of as "permutation, K = 6".


class Design(NamedTuple):
    """Where the orders of training are drawn.

    Attributes:
      title: how the tables call it.
      settings: `key=value` overrides of all rows.
    """

    title: str
    settings: tuple[str, ...] = ()


class Row(NamedTuple):
    """A way to train.

    Attributes:
      title: how the tables call it.
      recipe: file name in configs/ablation.
      costs: CPU time of a step in each design, relative to that of K = 6.
      settings: what differs from the recipe.
    """

    title: str
    recipe: str
    costs: Mapping[str, float]
    settings: tuple[str, ...] = ()


class Run(NamedTuple):
    """A row of the tables, which several seeds train.

    Attributes:
      design: a key of `DESIGNS`.
      row: a key of `ROWS`.
      equal: `_COMPUTE` or `_TARGETS`.
      steps: number of training steps.
    """

    design: str
    row: str
    equal: str
    steps: int

    @property
    def title(self) -> str:
        """How the tables call it."""
        targets = f", targets of {ROWS['k6'].title}" if self.equal == _TARGETS else ""
        return f"{ROWS[self.row].title}, {DESIGNS[self.design].title}{targets}"


DESIGNS = {
    "whole": Design("whole window", ("data.reuse_len=0", "model.mem_len=0")),
    "halves": Design("halves, memory"),
}
ROWS = {
    "k1": Row("K = 1", "xlnet_k1", {"whole": 1.65, "halves": 1.5}),
    "k2": Row("K = 2", "xlnet_k2", {"whole": 1.5, "halves": 1.2}),
    "k6": Row("K = 6", "xlnet_k6", {"whole": 1.0, "halves": 1.0}),
    "diffusion": Row("diffusion", "absorbing_diffusion", {"whole": 1.0, "halves": 1.0}),
    "causal": Row("causal", "xlnet_k6", {"whole": 0.9, "halves": 0.6}, _FORWARD),
}
_READINGS = {
    "left_to_right": "left to right, bits per byte",
    "random": "random orders, bits per byte",
    "span": "span, nats per token",
    "pseudo": "pseudo-log-likelihood, nats per token",
    "deviation": "deviation of orders, nats",
}
_UNITS = {  # What the size of a text is in, of which a reading is the mean.
    "left_to_right": "byte",
    "random": "byte",
    "span": "span",
    "pseudo": "token",
    "deviation": "text",
}
_ACCURACY = "accuracy, "  # Readings that begin so are better if higher.


def main() -> None:
    flags = parse_experiment(
        __doc__,
        text=TEXT,
        designs=flag(list(DESIGNS), "where orders are drawn"),
        rows=flag(list(ROWS), "rows to train"),
        equal=flag([_COMPUTE, _TARGETS], "what rows have as much of as K = 6"),
        steps=flag(1600, "training steps of K = 6"),
        rates=flag(["1.5e-3", "3e-3", "6e-3"], "learning rates to try"),
        seeds=SEEDS,
        minutes=MINUTES,
        set=SET,
        texts=flag(200, "number of texts, of which those of 25 to 32 tokens are read"),
        finetune=repeated("TRAIN,DEV: tables to fine-tune on, in a folder named as the data set"),
    )
    deadline = time.monotonic() + 60 * flags.minutes
    training_text, texts = split(flags.text, flags.output, flags.texts)
    ablation.prepare_data(training_text, flags.output, flags.set)

    def result(folder: str, name: str, run: Run, work: Callable[[], dict]) -> dict | None:
        path = os.path.join(flags.output, folder, f"{name}.json")
        if time.monotonic() > deadline and not os.path.exists(path):
            return None
        return kept(path, work, ablation.recipe_of(ROWS[run.row].recipe))

    for seed, run in itertools.product(range(flags.seeds), runs_of(flags)):
        name = f"{run.design}-{run.row}-{run.steps}"
        tried: dict[str, float | None] = {}
        for rate in flags.rates:
            found = result("rates", f"{name}-{rate}", run, partial(_loss_at, flags, run, rate))
            tried |= {rate: found["loss"]} if found else {}
        if len(tried) == len(flags.rates):
            result("runs", f"{name}-{seed}", run, partial(_run, flags, run, tried, seed, texts))
    runs = ablation.read_results(flags.output)
    if flags.document:
        publish(flags.document, "readings", runs, tables(runs))
    print(json.dumps({row.title: _means(found) for row, found in _by_row(runs).items()}))


def runs_of(flags: Any) -> list[Run]:
    """Runs of each seed: rows of equal compute, and permutations of equal targets, in each design.

    Args:
      flags: of the command line; `designs`, `rows`, `equal` and `steps` count.
    """
    found = []
    if _COMPUTE in flags.equal:
        for design, row in itertools.product(flags.designs, flags.rows):
            steps = _even(flags.steps / ROWS[row].costs[design])
            found.append(Run(design, row, _COMPUTE, steps))
    if _TARGETS in flags.equal:
        permuted = [row for row in _PERMUTED if row in flags.rows]
        for design, row in itertools.product(flags.designs, permuted):
            steps = flags.steps * _num_predict("k6") / _num_predict(row)
            found.append(Run(design, row, _TARGETS, _even(steps)))
    return found


def _even(steps: float) -> int:
    return 10 * round(steps / 10)


def _num_predict(row: str) -> int:
    return ablation.configuration(ROWS[row].recipe, [*ROWS[row].settings]).data.num_predict


def _configuration(flags: Any, run: Run, steps: int, rate: str, seed: int) -> tuple[Any, str]:
    """The configuration of a run, and its data set."""
    row = ROWS[run.row]
    settings = [*row.settings, *DESIGNS[run.design].settings, *flags.set]
    settings += [f"learning_rate={rate}", f"num_steps={steps}", f"warmup_steps={steps // 10}"]
    config = ablation.configuration(row.recipe, settings, seed)
    return config, os.path.join(flags.output, "both" if config.data.bidirectional else "forward")


def _loss_at(flags: Any, run: Run, rate: str) -> dict[str, Any]:
    """Loss of the row's own objective on held-out windows after a third of the steps."""
    print(*run, rate, file=sys.stderr, flush=True)
    config, data = _configuration(flags, run, run.steps // 3, rate, seed=0)
    name = f"{run.design}-{run.row}-{run.steps}-{rate}"
    model_dir = os.path.join(flags.output, "models", name)
    train(config, data, model_dir)
    return {"loss": xlnet.evaluate(model_dir, data)["loss"]}


def split(text: str, output: str, number: int) -> tuple[str, list[str]]:
    """Takes every tenth document out of a text.

    Args:
      text: file with a paragraph a line and a blank line between documents.
      output: directory of the rest.
      number: number of texts.

    Returns:
      The path of the rest, and `number` sentences of the other documents, of 60 to 110 characters.
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
        if 60 <= len(sentence.strip()) < 110
    ]
    chosen = sorted(np.random.default_rng(0).permutation(len(sentences))[:number])
    return path, [sentences[n] for n in chosen]


def _run(
    flags: Any, run: Run, tried: Mapping[str, float | None], seed: int, texts: Sequence[str]
) -> dict[str, Any]:
    """Trains one row with one seed at its best rate, and reads the texts with it."""
    finite = {rate: loss for rate, loss in tried.items() if loss is not None}  # NaN is null.
    rate = min(finite, key=lambda rate: finite[rate])
    print(*run, rate, f"seed {seed}", file=sys.stderr, flush=True)
    config, data = _configuration(flags, run, run.steps, rate, seed)
    name = f"{run.design}-{run.row}-{run.steps}-{seed}"
    model_dir = os.path.join(flags.output, "models", name)
    cpu_seconds = train(config, data, model_dir)
    result = run._asdict() | {
        "tried": tried,
        "rate": rate,
        "seed": seed,
        "cpu_seconds": cpu_seconds,
    }
    result["targets"] = run.steps * config.training.batch_size * config.data.num_predict
    scorer = xlnet.Scorer(xlnet.load_pretrainer(model_dir), xlnet.load_tokenizer(model_dir))
    texts = [x for x in texts if len(scorer.tokenizer.encode(x)) in _TOKENS]
    is_causal = config.objective.kind == "causal"
    result |= {"num_texts": len(texts)} | readings(scorer, texts, is_causal)
    for tables in (pair.split(",") for pair in flags.finetune):
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
      `deviation`: standard deviation of log p of a text over random orders, in nats.
      `of_texts`: {reading: sum of each text}, and `sizes`: {unit of `_UNITS`: size of each text},
      of which readings are the ratios.
    """
    whole = scorer(texts)
    sizes = {
        "byte": [len(score.text.encode()) for score in whole],
        "token": [len(score.pieces) for score in whole],
        "text": [1] * len(whole),
    }
    sums = {"left_to_right": [-score.total / np.log(2) for score in whole]}
    if not is_causal:
        random, pseudo = scorer(texts, "random", _NUM_ORDERS), scorer(texts, "pseudo")
        sums["random"] = [-score.total / np.log(2) for score in random]
        sums["pseudo"] = [-score.total for score in pseudo]
        sums["deviation"] = [np.std(score.order_totals, ddof=1) for score in random]
    found: dict[str, Any] = {
        reading: float(np.sum(values) / np.sum(sizes[_UNITS[reading]]))
        for reading, values in sums.items()
    }
    of_texts = [(score.text, score.offsets) for score in whole]
    # A lone word mark is a token without characters, which a span cannot name.
    named = [(text, spans) for text, spans in of_texts if all(a < b for a, b in spans)]
    found["passes"] = {}
    for passes in _PASSES[-1:] if is_causal else _PASSES:
        losses = _span_losses(scorer, named, passes, is_causal)
        found["passes"][passes] = float(losses.mean())
        if passes == _SPAN:
            sums["span"] = losses.sum(axis=1)
            sizes["span"] = [_SPAN] * len(named)
    found["span"] = found["passes"][_SPAN]
    return found | {"of_texts": {x: np.round(sums[x], 2).tolist() for x in sums}, "sizes": sizes}


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
    """Formats the readings of each row, and differences at equal compute and with equal targets."""
    rows = _by_row(runs)
    compute = {(run.design, run.row): run for run in rows if run.equal == _COMPUTE}
    pairs = [
        (compute[design, "k1"], other)
        for (design, row), other in compute.items()
        if row != "k1" and (design, "k1") in compute
    ]
    pairs += [
        (compute[other.design, "k6"], other)
        for other in rows
        if other.equal == _TARGETS and (other.design, "k6") in compute
    ]
    return {"readings": _readings(rows), "differences": _differences(rows, pairs)}


def _by_row(runs: Iterable[dict[str, Any]]) -> dict[Run, list[dict[str, Any]]]:
    """Results of the seeds of each row, in the order of the tables."""
    rows: dict[Run, list[dict[str, Any]]] = {}
    for run in runs:
        rows.setdefault(Run(*(run[name] for name in Run._fields)), []).append(run)
    places = [*DESIGNS], [*ROWS]

    def place(run: Run) -> tuple:
        return run.equal, places[0].index(run.design), places[1].index(run.row)

    return {run: rows[run] for run in sorted(rows, key=place)}


def passes(runs: Sequence[dict[str, Any]]) -> dict[str, dict[str, tuple[float, float]]]:
    """Loss of spans at equal compute with an order of the whole window, for the picture.

    Returns:
      {title of a row: {number of passes: mean in nats per token, and half of its interval}}.
    """
    lines: dict[str, dict[str, tuple[float, float]]] = {}
    for row, found in _by_row(runs).items():
        if (row.design, row.equal) == ("whole", _COMPUTE):
            values = {n: [run["passes"][n] for run in found] for n in found[0]["passes"]}
            means = {n: (float(np.mean(x)), half_interval(x)) for n, x in values.items()}
            lines[ROWS[row.row].title] = means
    return lines


def _differences(
    rows: Mapping[Run, Sequence[dict[str, Any]]], pairs: Sequence[tuple[Run, Run]]
) -> str:
    """What rows are ahead of others by, in every reading that is printed, paired by seed."""
    columns = _columns(run for found in rows.values() for run in found)
    found = [_difference(rows[ours], rows[other], key) for ours, other in pairs for key in columns]
    cells = iter(with_verdicts(found))
    lines = [
        [f"{ROWS[ours.row].title} against {other.title}", *itertools.islice(cells, len(columns))]
        for ours, other in pairs
    ]
    return markdown_table([["", *columns.values()], *lines])


def _difference(base: Sequence[dict], others: Sequence[dict], reading: str) -> Difference | None:
    """What a row is ahead of another by; its error is of seeds and, if on file, of texts."""
    theirs = {run["seed"]: run for run in others if reading in run}
    pairs = [(run, theirs[run["seed"]]) for run in base if run["seed"] in theirs]
    pairs = [(ours, other) for ours, other in pairs if reading in ours]
    if not pairs:
        return None
    values = [other[reading] - ours[reading] for ours, other in pairs]
    if reading.startswith(_ACCURACY):
        task = reading.removeprefix(_ACCURACY)
        shares = np.mean([[ours[reading], other[reading]] for ours, other in pairs], axis=0)
        sources = [over_examples(shares, ours["examples"][task]) for ours, _ in pairs[:1]]
        return difference(-np.mean(values), over_runs(values), *sources)
    if reading not in _UNITS:
        return difference(np.mean(values), over_runs(values))
    sums = np.array([[run["of_texts"][reading] for run in pair] for pair in pairs])
    texts = over_texts(sums, np.array(pairs[0][0]["sizes"][_UNITS[reading]]))
    return difference(np.mean(values), over_runs(values), texts)


def over_examples(shares: np.ndarray, number: int) -> tuple[float, int]:
    """Variance of a difference of two accuracies due to the examples, and its degrees of freedom.

    As if both were of other examples, which is an upper bound, as which are right is not on file.
    """
    return float(np.sum(shares * (1 - shares)) / number), number - 1


def _mean(runs: Sequence[dict[str, Any]], key: str, digits: int = 3) -> str:
    return mean_and_interval([run[key] for run in runs], digits) if key in runs[0] else "–"


def _means(runs: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The mean of each reading over seeds."""
    return {key: float(np.mean([run[key] for run in runs])) for key in _columns(runs)}


def _columns(runs: Iterable[dict[str, Any]]) -> dict[str, str]:
    """The readings that some run has, and their titles."""
    measured = dict.fromkeys(key for run in runs for key in run)
    columns = {key: title for key, title in _READINGS.items() if key in measured}
    return columns | {key: key for key in measured if key.startswith(_ACCURACY)}


def _readings(rows: Mapping[Run, Sequence[dict[str, Any]]]) -> str:
    columns = _columns(run for found in rows.values() for run in found)
    lines = [["", "steps", "rate", "CPU-seconds", *columns.values()]]
    for run, found in rows.items():
        seconds = [x["cpu_seconds"] for x in found if x["cpu_seconds"]]
        cells = [mean_and_interval(seconds, 0), *(_mean(found, key) for key in columns)]
        lines.append([run.title, str(run.steps), found[0]["rate"], *cells])
    return markdown_table(lines)


if __name__ == "__main__":
    main()
