"""Scores texts: log-likelihood under a factorization order, per token, per word and in total.

Prints one JSON object per text, with `text`, `tokens`, `log_likelihoods` (nats) and their sum,
`log_likelihood` or `total`.
--input may be a table with a column `text`; its other columns come back. --words writes a row for
each word, with its surprisal. --context, or a column `context`, is given and not scored. --pairs
compares the columns `good` and `bad` of a table (BLiMP's `sentence_good` and `sentence_bad`), or
the conditions that the predictions of a SyntaxGym suite (.json) name. --norms correlates the
log-likelihood of completions (columns `context` and `text`, or `frame` and `completion`) with a
column.

Example:
  xlnet score --model=runs/model --text='The cat sat.'
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from data_prep.tasks.text_rows import read_suite, read_text_rows
from official.xlnet.commands import MODEL, TEXTS, boolean, choice, flag_table, integer, seed, string
from official.xlnet.configs.choices import GIVEN_SIDES, PUNCTUATION, SCORING_ORDERS, UNITS
from official.xlnet.configs.validation import require
from official.xlnet.data.reading import check_unknown, say_counts
from official.xlnet.data.result_files import TABLES, check_ending, write_rows
from official.xlnet.data.text_files import write_json_lines
from official.xlnet.errors import ConfigError, DataError, require_data
from official.xlnet.files.staging import on_local_disk
from official.xlnet.runtime.perplexity import perplexity

FLAGS = flag_table(
    MODEL,
    TEXTS,
    choice(
        "order",
        default="left_to_right",
        values=SCORING_ORDERS,
        text="Factorization order; pseudo: pseudo-log-likelihood (each token given all others).",
    ),
    integer(
        "num_orders",
        default=8,
        text="Number of orders to average over, for --order=random.",
        least=1,
        most=10_000,
    ),
    seed("Random seed, for --order=random and for intervals of --pairs."),
    string("context", None, "Text that is given and not scored; default: the column context."),
    choice("given", "left", GIVEN_SIDES, "Where the context stands; both: around its blank ____."),
    boolean("whole_given", False, "Whether the tokens of the context attend to each other."),
    boolean("words", False, f"Write a row for each word; --output ends in {', '.join(TABLES)}."),
    choice("unit", "nats", UNITS, "Unit of surprisal, for --words."),
    choice("punctuation", "attached", PUNCTUATION, "Marks with their words or alone, for --words."),
    boolean("pairs", False, "Compare the columns good and bad of --input."),
    string("norms", None, "Column of cloze probabilities, or of other norms of --input."),
    string("group", None, "Column that groups --pairs (default: UID, if there is one) or --norms."),
)


@on_local_disk(FLAGS, reads=["model", "input"], writes=["output"])
def run() -> dict[str, Any]:
    """Scores texts; returns `texts`, `tokens`, `log_likelihood` (nats) and `perplexity`."""
    from official.xlnet.inference.language_model import SCORED, loaded
    from official.xlnet.inference.scoring import Scorer, standard_error
    from official.xlnet.inference.words import Word

    is_table = (FLAGS.words or FLAGS.pairs) and FLAGS.output
    if is_table:
        check_ending(FLAGS.output, TABLES)
    rows, formulas = _rows()
    columns = {name for row in rows for name in row}
    if taken := FLAGS.words and columns & {field.name for field in dataclasses.fields(Word)}:
        raise ConfigError(
            f"{FLAGS.input}: expected a table without the columns that --words writes, got "
            f"{', '.join(sorted(taken))}; rename them"
        )
    model, tokenizer = loaded(FLAGS.model, kinds=SCORED)
    scorer = Scorer(model, tokenizer)
    scores, starts = _scores(scorer, rows)
    if FLAGS.pairs:
        written, metrics = _pairs(rows, scores, formulas)
    else:
        written = _words(rows, scores, starts) if FLAGS.words else _texts(rows, scores)
        metrics = _norms(rows, scores) if FLAGS.norms else {}
    if is_table:
        write_rows(FLAGS.output, written)
    elif not FLAGS.pairs:
        write_json_lines(FLAGS.output, written)
    num_tokens = sum(len(result.pieces) for result in scores)
    counts = {"texts": len(rows), "empty": sum(not row["text"].strip() for row in rows)}
    say_counts(FLAGS.input or "--text", {**counts, **tokenizer.counts})
    total = sum(result.total for result in scores)
    return {
        **counts,
        "tokens": num_tokens,
        "log_likelihood": total,
        **_error(standard_error(sum(result.order_totals for result in scores))),
        "perplexity": perplexity(-total / max(1, num_tokens)),
        **metrics,
        **check_unknown(tokenizer.counts, "texts"),
    }


def _rows() -> tuple[list[dict[str, Any]], list[str]]:
    """The rows to score, of pairs first the good, then the bad ones; and predictions of a suite."""
    if FLAGS.pairs:
        if not FLAGS.input or FLAGS.text or FLAGS.words or FLAGS.norms:
            raise ConfigError("--pairs: expected --input, and neither --text, --words nor --norms")
        if suite := read_suite(FLAGS.input):
            return suite
        pairs = read_text_rows([], FLAGS.input, ("good", "bad"))
        return [{**row, "text": row[side]} for side in ("good", "bad") for row in pairs], []
    needed = ("context", "text") if FLAGS.norms else ("text",)
    rows = read_text_rows(FLAGS.text, FLAGS.input, needed)
    for number, row in enumerate(rows, start=1):
        context, where = row.get("context") or "", f"{FLAGS.input}, row {number}"
        require_data(isinstance(context, str), where, "a string 'context'", repr(context))
    return rows, []


def _scores(scorer: Any, rows: list[dict[str, Any]]) -> tuple[list[Any], list[int]]:
    """Scores of the texts of rows, each in its context, and where in it the text starts."""
    from official.xlnet.inference.text_parts import in_context

    placed = []
    for row in rows:
        context = (row.get("context") if FLAGS.context is None else FLAGS.context) or ""
        placed.append(in_context(row["text"], context, FLAGS.given if context else "left"))
    whole, targets = [text for text, _ in placed], [spans for _, spans in placed]
    options = {"targets": targets, "whole_given": FLAGS.whole_given}
    scores = scorer.score(whole, FLAGS.order, FLAGS.num_orders, FLAGS.seed, **options)
    return scores, [spans[0][0] if spans else 0 for spans in targets]


def _texts(rows: list[dict[str, Any]], scores: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            **row,
            "tokens": result.pieces,
            "log_likelihoods": result.log_likelihoods.tolist(),
            "log_likelihood": result.total,
            "total": result.total,
            **_error(result.standard_error),
        }
        for row, result in zip(rows, scores, strict=True)
    ]


def _error(value: float | None) -> dict[str, float]:
    return {} if value is None else {"standard_error": value}


def _words(
    rows: list[dict[str, Any]], scores: list[Any], starts: list[int]
) -> list[dict[str, Any]]:
    from official.xlnet.inference.words import words_of

    words = []
    for number, (row, result) in enumerate(zip(rows, scores, strict=True), start=1):
        columns = {name: row[name] for name in row if name not in ("text", "context")}
        for word in words_of(result, FLAGS.punctuation, FLAGS.unit):
            first = starts[number - 1]  # Characters count from there.
            place = {"start": word.start - first, "end": word.end - first}
            words.append({"text_id": number, **columns, **dataclasses.asdict(word), **place})
    return words


def _pairs(
    rows: list[dict[str, Any]], scores: list[Any], formulas: list[str]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A row for each pair, or prediction of a suite, with its difference; and the metrics."""
    from official.xlnet.inference.pairs import pair_metrics, suite_margins

    if formulas:
        pairs, group = suite_margins(rows, scores, formulas), FLAGS.group or "prediction"
    else:
        totals = np.reshape([result.total for result in scores], [2, -1]).T.tolist()
        rows = [{name: row[name] for name in row if name != "text"} for row in rows]
        pairs = [
            {**row, "good_total": good, "bad_total": bad, "difference": good - bad}
            for row, (good, bad) in zip(rows, totals, strict=False)
        ]
        group = FLAGS.group or "UID" * ("UID" in pairs[0])
    groups = _column("group", group, pairs) if group else []
    return pairs, pair_metrics([row["difference"] for row in pairs], groups, FLAGS.seed)


def _norms(rows: list[dict[str, Any]], scores: list[Any]) -> dict[str, Any]:
    """Correlations of the scores with the norms of their texts."""
    import pandas as pd

    from official.xlnet.inference.pairs import norm_correlations

    given = _column("norms", FLAGS.norms, rows)
    norms = pd.to_numeric(pd.Series(given, dtype=object), errors="coerce").to_numpy(float)
    for number in np.flatnonzero(~np.isfinite(norms))[:1]:
        place = f"{FLAGS.input}, row {number + 1}, column {FLAGS.norms!r}"
        raise DataError(f"{place}: expected a number, got {given[number]!r}")
    groups = _column("group", FLAGS.group, rows) if FLAGS.group else []
    return norm_correlations([result.total for result in scores], norms, groups)


def _column(flag: str, name: str, rows: list[dict[str, Any]]) -> list[Any]:
    require(all(name in row for row in rows), f"--{flag}", f"a column of {FLAGS.input}", name)
    return [row[name] for row in rows]
