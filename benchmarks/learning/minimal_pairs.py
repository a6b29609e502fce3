"""Minimal pairs under a pre-trained model: accuracy by group and order, and words of one pair.

    python -m benchmarks.learning.minimal_pairs --model=runs/reviews/model --pairs=blimp.jsonl \
           --document=docs/experiments.md --output=docs/minimal_pairs.json
    python -m benchmarks.learning.minimal_pairs --model=demo_output/model \
           --pairs=demo_output/pairs.tsv --output=pairs.json --picture=pairs.png

Scores both sentences of each pair in every order that the model can score, and writes the accuracy
by group and the words of one pair to a JSON file, and, where asked for, a table of a page and a
picture. The last line is JSON: the accuracy in each order.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib

from benchmarks.harness.command_line import flag, parse, repeated, required
from benchmarks.harness.tables import fill_table, markdown_table, measured_with
from benchmarks.reports import result_figures
from data_prep.tasks.text_rows import read_text_rows
from official import xlnet
from official.xlnet.files.json_files import write_json
from official.xlnet.projects.any_order.pairs import pair_metrics
from official.xlnet.projects.any_order.words import words_of

# What results depend on besides training and recipes; see `harness.sources`.
CODE = (
    "official.xlnet.inference.scoring",
    "official.xlnet.projects.any_order.orders",
    "official.xlnet.projects.any_order.pairs",
)

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
        output=flag("docs/minimal_pairs.json", "JSON file to write"),
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
        groups = {f"all {len(rows)} pairs": metrics} | {
            f"`{name}`": {order: metrics[order]["groups"][name] for order in metrics}
            for name in metrics[_ORDERS[0]]["groups"]
        }
        cells = [
            (name, *(_accuracy(of_orders[order]) for order in _ORDERS))
            for name, of_orders in groups.items()
        ]
        head = ("accuracy (95% interval)", *(f"`{order}`" for order in _ORDERS))
        table = markdown_table([head, *cells])
        fill_table(flags.document, flags.table, table, measured_with(code=CODE))
    print(json.dumps({order: found["accuracy"] for order, found in metrics.items()}))


def _accuracy(metrics: dict) -> str:
    low, high = metrics["accuracy_interval"]
    return f"{100 * metrics['accuracy']:.0f}% ({100 * low:.0f}–{100 * high:.0f})"


if __name__ == "__main__":
    main()
