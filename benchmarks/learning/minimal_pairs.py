"""Minimal pairs under a pre-trained model: accuracy by group and order, and words of one pair.

    python -m benchmarks.learning.minimal_pairs --model=demo_output/model --cluster=noun \
           --pairs=demo_output/pairs.tsv --output=docs/agreement.json --document=docs/experiments.md
    python -m benchmarks.learning.minimal_pairs --model=runs/reviews/model --pairs=blimp.jsonl \
           --output=pairs.json --picture=pairs.png

Scores both sentences of each pair in every order that the model can score, and writes the accuracy
by group and the words of one pair to a JSON file, and, where asked for, a table of a page and a
picture. The last line is JSON: the accuracy and the mean difference in each order.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib

from benchmarks.harness.command_line import flag, parse, repeated, required
from benchmarks.harness.tables import fill_table, markdown_table
from benchmarks.reports import result_figures
from data_prep.tasks.text_rows import read_text_rows
from official import xlnet
from official.xlnet.files.json_files import write_json
from official.xlnet.projects.any_order.pairs import pair_metrics
from official.xlnet.projects.any_order.words import words_of

_NUM_ORDERS = 8
_ORDERS = (
    "left_to_right",
    "right_to_left",
    "inside_out",
    "confidence",
    "entropy",
    "random",
    "pseudo",
)


def main() -> None:
    flags = parse(
        __doc__,
        model=required("pre-trained model"),
        pairs=required("table of pairs in BLiMP's format"),
        cluster=repeated("column of what pairs have in common, such as a noun"),
        shown=flag(0, "number of the pair whose words are drawn"),
        document=flag(None, "document to write the table into"),
        table=flag("pairs", "which table of the document"),
        output=required("JSON file to write"),
        picture=flag(None, "PNG file to draw"),
    )
    rows = read_text_rows([], flags.pairs, ("good", "bad", "UID", *flags.cluster))
    clusters = [[row[name] for row in rows] for name in flags.cluster]
    model = xlnet.load_pretrainer(flags.model, batch_size=1, dtype="float32")
    scorer = xlnet.Scorer(model, xlnet.load_tokenizer(flags.model))
    metrics = {}
    for order in _ORDERS:
        good, bad = ([row[side] for row in rows] for side in ("good", "bad"))
        scores = scorer.score([*good, *bad], order, _NUM_ORDERS)
        totals = [result.total for result in scores]
        differences = [a - b for a, b in zip(totals, totals[len(rows) :], strict=False)]
        metrics[order] = pair_metrics(differences, [row["UID"] for row in rows], clusters=clusters)
    shown = rows[flags.shown]
    words = {
        side: [dataclasses.asdict(word) for word in words_of(result)]
        for side, result in zip(("good", "bad"), scorer([shown["good"], shown["bad"]]), strict=True)
    }
    write_json(flags.output, {"orders": metrics, "words": words}, indent=None)
    if flags.picture:
        pathlib.Path(flags.picture).write_bytes(result_figures.minimal_pairs(metrics))
    if flags.document:
        fill_table(flags.document, flags.table, table_of(metrics))
    columns = ("accuracy", "mean_difference")
    numbers = {order: [found[name] for name in columns] for order, found in metrics.items()}
    print(json.dumps(numbers))


def table_of(metrics: dict[str, dict]) -> str:
    """Formats the accuracy of all pairs and of each group, in each order.

    Args:
      metrics: {order: `pair_metrics`}.
    """
    first = next(iter(metrics.values()))
    rows = [["accuracy (95% interval)", *(f"`{order}`" for order in metrics)]]
    rows.append([f"all {first['pairs']} pairs", *map(_accuracy, metrics.values())])
    for name in first["groups"]:
        of_group = [_accuracy(found["groups"][name]) for found in metrics.values()]
        rows.append([f"`{name}`", *of_group])
    return markdown_table(rows)


def _accuracy(metrics: dict) -> str:
    low, high = metrics["accuracy_interval"]
    return f"{100 * metrics['accuracy']:.0f}% ({100 * low:.0f}–{100 * high:.0f})"


if __name__ == "__main__":
    main()
