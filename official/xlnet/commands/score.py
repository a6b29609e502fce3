"""`xlnet score`: log-likelihoods of texts, words, pairs and completions, from files to files."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from data_prep.tasks.text_rows import read_suite, read_text_rows
from official.xlnet.configs.choices import GIVEN_SIDES, PUNCTUATION, SCORING_ORDERS, UNITS
from official.xlnet.configs.validation import require
from official.xlnet.data.reading import check_unknown, log_counts
from official.xlnet.data.result_files import TABLES, check_ending, require_json_lines, write_rows
from official.xlnet.data.text_files import write_json_lines
from official.xlnet.errors import ConfigError, DataError, require_data
from official.xlnet.files.arguments import COMMAS, OutputFile, Path
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf, Range, shown
from official.xlnet.runtime.perplexity import perplexity
from official.xlnet.runtime.progress import elapsed_time
from official.xlnet.tokenization.special_tokens import SPECIAL_PIECES, UNK_ID


@public()
def score_file(
    model: Path,
    text: Sequence[str] = (),
    input: Path | None = None,
    output: OutputFile | None = None,
    order: Annotated[str, OneOf(SCORING_ORDERS)] = "left_to_right",
    num_orders: Annotated[int, Range(1, 10_000)] = 8,
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0,
    context: str | None = None,
    given: Annotated[str, OneOf(GIVEN_SIDES)] = "left",
    whole_given: bool = False,
    consistency: bool = False,
    words: bool = False,
    unit: Annotated[str, OneOf(UNITS)] = "nats",
    punctuation: Annotated[str, OneOf(PUNCTUATION)] = "attached",
    pairs: bool = False,
    norms: str | None = None,
    group: str | None = None,
    format: Annotated[str, OneOf(("kaldi", "nbest"))] | None = None,
    weights: Annotated[Sequence[str], COMMAS] = (),
) -> dict[str, Any]:
    """Scores texts: log-likelihood under a factorization order, per token, per word and in total.

    Prints one JSON object per text, with `text`, `tokens`, `log_likelihoods` (nats) and their sum,
    `log_likelihood` or `total`. The other columns of a table come back, too. A text of unknown
    tokens alone has `only_unknown`, as its log-likelihood says nothing of its words.

    Args:
      model: model directory.
      text: input text; may be repeated.
      input: file with one text per line, or a table with a column `text`.
      output: output file: JSON lines, or a table for words and pairs; default: standard output.
      order: factorization order; inside_out: from the middle; confidence, entropy: next the token
        that the model is most certain of; pseudo: pseudo-log-likelihood (each token given all
        others).
      num_orders: number of orders to average over, for the order random and for consistency.
      seed: random seed, for the order random and for the intervals of pairs.
      context: text that is given and not scored; default: the column `context`.
      given: where the context stands; both: around its blank ____.
      whole_given: whether the tokens of the context attend to each other.
      consistency: also measure how far orders disagree: the standard deviation of the
        log-likelihood over random orders, and the gap between the two orders of the text's halves,
        without its context.
      words: write a row for each word, with its surprisal; the output ends in .tsv, .csv, .jsonl
        or .parquet.
      unit: unit of surprisal, for words.
      punctuation: marks with their words or alone, for words.
      pairs: compare the columns `good` and `bad` of the input (BLiMP's `sentence_good` and
        `sentence_bad`), or the conditions that the predictions of a SyntaxGym suite (.json) name.
      norms: column of cloze probabilities, or of other norms of the input, to correlate with the
        log-likelihood of completions (columns `context` and `text`, or `frame` and `completion`).
      group: column that groups pairs (default: UID, if there is one) or norms.
      format: format of the input, if its name does not say it: kaldi, an id and words on each line;
        nbest, JSON lines with a list hyps of objects with a text and other scores.
      weights: with nbest, writes only the hypothesis of each line with the largest weighted sum of
        scores, e.g. am:1,lm:0.7, where lm is the log-likelihood and other names are of the objects.

    Returns:
      `texts`, `tokens`, `log_likelihood` (nats), `perplexity`, `only_unknown`, and the metrics of
      pairs, norms or consistency (means over the texts).

    Example:
      $ xlnet score --model=runs/model --text='The cat sat.'
    """
    from official.xlnet.inference.language_model import SCORED, loaded
    from official.xlnet.inference.scoring import Scorer, standard_error

    table = _table(output, words or pairs)
    if consistency and (words or pairs or num_orders < 2):
        raise ConfigError("consistency: expected texts and 2 orders or more, no words or pairs")
    if pairs and (not input or text or words or norms or format):
        raise ConfigError("pairs: expected input, and neither text, words, norms nor format")
    if weights and (format != "nbest" or text or words):
        raise ConfigError("weights: expected format=nbest, and neither text nor words")
    rows, formulas = _pair_rows(input) if pairs and input else _rows(text, input, norms, format)
    if words:
        _require_other_columns(rows, input)
    weight_of = _weights(weights, rows)
    scored_model, tokenizer = loaded(model, kinds=SCORED)
    texts = _placed(rows, context, given)
    targets = [spans for _, spans in texts]
    scorer = Scorer(scored_model, tokenizer)
    if consistency:
        scorer.require_one_window([row["text"] for row in rows], "consistency")
    with elapsed_time(lambda: f"texts: {len(texts)}, windows: {scorer.num_windows}"):
        scores = scorer.score(
            [whole for whole, _ in texts],
            *(order, num_orders, seed),
            targets=targets,
            whole_given=whole_given,
        )
    metrics: dict[str, Any] = {}
    if pairs:
        written, metrics = _pairs(rows, scores, formulas, group, seed)
    elif words:
        starts = [spans[0][0] if spans else 0 for spans in targets]
        written = _words(rows, scores, starts, punctuation, unit)
    else:
        written = _texts(rows, scores)
        if consistency:
            metrics = _add_consistency(written, scorer, num_orders, seed)
        if weights:
            written = _best(written, weight_of)
    if norms:
        metrics |= _norms(rows, scores, norms, group)
    if table:
        write_rows(table, written)
    elif not pairs:
        write_json_lines(output, written)
    num_tokens = sum(len(result.pieces) for result in scores)
    counts = {"texts": len(rows), "empty": sum(not row["text"].strip() for row in rows)}
    counts["only_unknown"] = sum(map(_is_unknown, scores))
    log_counts(input or "text", {**counts, **tokenizer.counts})
    total = sum(result.total for result in scores)
    return {
        **counts,
        "tokens": num_tokens,
        "log_likelihood": total,
        **_error(standard_error(np.sum([result.order_totals for result in scores], axis=0))),
        "perplexity": perplexity(-total / max(1, num_tokens)),
        **metrics,
        **check_unknown(tokenizer.counts, "texts"),
    }


def _require_other_columns(rows: list[dict[str, Any]], path: str | None) -> None:
    """Raises `ConfigError` if columns have the names of those that `words` writes."""
    from official.xlnet.inference.words import Word

    columns = {name for row in rows for name in row}
    if taken := columns & {field.name for field in dataclasses.fields(Word)}:
        raise ConfigError(
            f"{path}: expected a table without the columns that words writes, got "
            f"{', '.join(sorted(taken))}; rename them"
        )


def _table(output: str | None, is_table: bool) -> str | None:
    """The path if it is of a table; raises `ConfigError` for another ending."""
    if is_table and output:
        check_ending(output, TABLES)
        return output
    require_json_lines(output)
    return None


def _weights(weights: Sequence[str], rows: list[dict[str, Any]]) -> dict[str, float]:
    """The weight of each score, which all hypotheses must have."""
    found = {}
    for name, _, value in (weight.partition(":") for weight in weights):
        found[name] = math.nan
        with contextlib.suppress(ValueError):
            found[name] = float(value)
        if not math.isfinite(found[name]):
            raise ConfigError(f"weights: expected NAME:NUMBER, got '{name}:{value}'")
    for number, row in enumerate(rows, start=1):
        for name in found.keys() - {"lm"}:
            is_number = type(row.get(name)) in (int, float)
            got = shown(row[name]) if name in row else f"the keys {', '.join(row)}"
            require_data(is_number, f"hypothesis {number}", f"a number {name!r}", got)
    return found


def _best(rows: list[dict[str, Any]], weights: dict[str, float]) -> list[dict[str, Any]]:
    """The row of each utterance with the largest weighted sum of scores; of equals the first."""
    best: dict[int, dict[str, Any]] = {}
    for row in rows:
        values = {**row, "lm": row["log_likelihood"]}
        row["weighted"] = math.fsum(weight * values[name] for name, weight in weights.items())
        if row["weighted"] > best.setdefault(row["utterance"], row)["weighted"]:
            best[row["utterance"]] = row
    return list(best.values())


def _is_unknown(score: Any) -> bool:
    """Whether all tokens of a text, of which there are some, are unknown or a space."""
    from official.xlnet.tokenization.tokenizer import WORD_START

    return {*score.pieces} - {WORD_START} == {SPECIAL_PIECES[UNK_ID]}


def _rows(
    texts: Sequence[str], path: str | None, norms: str | None, format: str | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows to score, whose contexts are strings, and no predictions."""
    rows = read_text_rows(texts, path, ("context", "text") if norms else ("text",), format)
    for number, row in enumerate(rows, start=1):
        context, where = row.get("context") or "", f"{path}, row {number}"
        require_data(isinstance(context, str), where, "a string 'context'", repr(context))
    return rows, []


def _pair_rows(path: str) -> tuple[list[dict[str, Any]], list[str]]:
    """First the good rows, then the bad ones; for a suite its rows and predictions."""
    if suite := read_suite(path):
        return suite
    pairs = read_text_rows([], path, ("good", "bad"))
    return [{**row, "text": row[side]} for side in ("good", "bad") for row in pairs], []


def _placed(
    rows: list[dict[str, Any]], context: str | None, given: str
) -> list[tuple[str, list[tuple[int, int]]]]:
    """Each text in its context, and the spans of characters to score in it."""
    from official.xlnet.inference.text_parts import in_context

    return [
        in_context(row["text"], fixed, given if fixed else "left")
        for row in rows
        for fixed in [(row.get("context") if context is None else context) or ""]
    ]


def _texts(rows: list[dict[str, Any]], scores: list[Any]) -> list[dict[str, Any]]:
    return [
        {
            **row,
            "tokens": result.pieces,
            "log_likelihoods": result.log_likelihoods.tolist(),
            "log_likelihood": result.total,
            "total": result.total,
            **_error(result.standard_error),
            **({"mixture": mixture._asdict()} if (mixture := result.mixture()) else {}),
            **({"only_unknown": True} if _is_unknown(result) else {}),
        }
        for row, result in zip(rows, scores, strict=True)
    ]


def _add_consistency(
    rows: list[dict[str, Any]], scorer: Any, num_orders: int, seed: int
) -> dict[str, float]:
    """Adds the consistency of each text to its row; returns the means."""
    from official.xlnet.inference.orders import Consistency, consistency

    measured = consistency(scorer, [row["text"] for row in rows], num_orders, seed)
    for row, values in zip(rows, measured, strict=True):
        row |= values._asdict()
    return Consistency(*np.mean(measured, axis=0).tolist())._asdict()


def _error(value: float | None) -> dict[str, float]:
    return {} if value is None else {"standard_error": value}


def _words(
    rows: list[dict[str, Any]],
    scores: list[Any],
    starts: list[int],
    punctuation: str,
    unit: str,
) -> list[dict[str, Any]]:
    from official.xlnet.inference.words import words_of

    words = []
    for number, (row, result) in enumerate(zip(rows, scores, strict=True), start=1):
        columns = {name: row[name] for name in row if name not in ("text", "context")}
        for word in words_of(result, punctuation, unit):
            first = starts[number - 1]  # Characters count from there.
            place = {"start": word.start - first, "end": word.end - first}
            words.append({"text_id": number, **columns, **dataclasses.asdict(word), **place})
    return words


def _pairs(
    rows: list[dict[str, Any]],
    scores: list[Any],
    formulas: list[str],
    group: str | None,
    seed: int,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A row for each pair, or prediction of a suite, with its difference; and the metrics."""
    from official.xlnet.inference.pairs import pair_metrics, suite_margins

    if formulas:
        pairs, group = suite_margins(rows, scores, formulas), group or "prediction"
    else:
        totals = np.reshape([result.total for result in scores], [2, -1]).T.tolist()
        rows = [{name: row[name] for name in row if name != "text"} for row in rows]
        pairs = [
            {**row, "good_total": good, "bad_total": bad, "difference": good - bad}
            | ({"only_unknown": True} if any(map(_is_unknown, both)) else {})
            for row, (good, bad), *both in zip(
                rows, totals, scores, scores[len(totals) :], strict=False
            )
        ]
        group = group or "UID" * ("UID" in pairs[0])
    groups = _column("group", group, pairs) if group else []
    return pairs, pair_metrics([row["difference"] for row in pairs], groups, seed)


def _norms(
    rows: list[dict[str, Any]], scores: list[Any], name: str, group: str | None
) -> dict[str, Any]:
    """Correlations of the scores with the norms of their texts."""
    import pandas as pd

    from official.xlnet.inference.pairs import norm_correlations

    texts = _column("norms", name, rows)
    norms = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(float)
    for number in np.flatnonzero(~np.isfinite(norms))[:1]:
        place = f"row {number + 1}, column {name!r}"
        raise DataError(f"{place}: expected a number, got {texts[number]!r}")
    groups = _column("group", group, rows) if group else []
    return norm_correlations([result.total for result in scores], norms, groups)


def _column(flag: str, name: str, rows: list[dict[str, Any]]) -> list[Any]:
    require(all(name in row for row in rows), flag, "a column of the input", name)
    return [row[name] for row in rows]
