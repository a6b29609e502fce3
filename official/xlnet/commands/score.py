"""`xlnet score`: log-likelihoods of texts, words, pairs and completions, from files to files."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import itertools
import math
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from data_prep.tasks.text_rows import Row, read_suite, read_text_rows, text_chunks
from official.xlnet.configs.choices import GIVEN_SIDES, PUNCTUATION, SCORING_ORDERS, UNITS
from official.xlnet.configs.validation import require
from official.xlnet.data.lost_rows import check_unknown, log_counts
from official.xlnet.data.result_files import TABLES, check_ending, require_json_lines, write_rows
from official.xlnet.data.text_files import Answers, batched, write_json_lines
from official.xlnet.errors import ConfigError, DataError, require_data
from official.xlnet.files.arguments import COMMAS, STANDARD, OutputFile, Path
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf, Range, shown
from official.xlnet.jobs.identity import identity_of
from official.xlnet.runtime.perplexity import perplexity
from official.xlnet.tokenization.special_tokens import SPECIAL_PIECES, UNK_ID

if TYPE_CHECKING:
    from official.xlnet.inference.scoring import Score, Scorer

_CHUNK = 256  # Texts that are scored together, and lost when the command is killed.


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
    tokens alone has `only_unknown`, as its log-likelihood says nothing of its words. Running the
    same command again resumes one that was killed.

    Args:
      model: model directory.
      text: input text; may be repeated.
      input: file with one text per line, or a table with a column `text`; - for standard input.
      output: output file: JSON lines, or a table for words and pairs; default: standard output; -
        for standard output without results at the end.
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
    given_options = types.SimpleNamespace(**locals())
    from official.xlnet.inference.language_model import loaded
    from official.xlnet.inference.orders import OF_WINDOWS
    from official.xlnet.inference.scoring import Scorer

    _check_options(given_options)
    table = _table(output, words or pairs)
    chunks: Iterable[list[Row]]
    if pairs and input:
        rows, formulas = _pair_rows(input, group)
        chunks, total = batched(rows, _CHUNK), len(rows)
    else:
        needed = ("context", "text") if norms else ("text",)
        check = _check_columns if words else _check_context
        chunks, total = text_chunks(text, input, _CHUNK, needed, check, format)
    in_one = "consistency" if consistency else f"order={order}" * (order not in OF_WINDOWS)
    if weights or norms or (in_one and total):
        chunks = [*chunks]  # What is wrong in any of them is refused before one is scored.
    norm_columns = _norm_columns(itertools.chain(*chunks), norms, group) if norms else ()
    weight_of = _weights(weights, chunks if weights else ())
    scored_model, tokenizer = loaded(model, takes_masked=True)
    scorer = Scorer(scored_model, tokenizer)
    for rows in chunks if in_one and total else ():
        alone = [row["text"] for row in rows]
        placed = [whole for whole, _ in _placed(rows, context, given)]
        scorer.require_one_window(alone if consistency else placed, in_one)
    how = order, num_orders, seed, context, given, whole_given, consistency
    work = Answers(
        *(chunks, functools.partial(_answer, scorer, *how), tokenizer.counts, total),
        *("texts" if total else "", lambda: f", windows: {scorer.num_windows}"),
    )
    identity = identity_of(output, input, [model], _CHUNK, text, *how, pairs, bool(norms), format)
    sums, metrics = _Sums(), dict[str, Any]()
    written: Iterable[dict[str, Any]]
    with work.to(output, identity) as answered:
        scored: Iterable[_Scored] = sums.over(_scored(answered, context, given))
        if pairs or norms:
            scored = held = list(scored)
        if norms:
            metrics = _correlations(held, *norm_columns)
        if pairs:
            written, metrics = _pairs(held, formulas, group, seed)
        else:
            written = _words(scored, punctuation, unit) if words else map(_text, scored)
            written = _best(scored, weight_of) if weights else written
        if table:
            write_rows(table, list(written))
        elif not pairs:
            write_json_lines(output, written)
    counts = {"texts": sums.texts, "empty": sums.empty, "only_unknown": sums.only_unknown}
    log_counts(input or "text", {**counts, **tokenizer.counts})
    return {
        **counts,
        **({"resumed_rows": work.kept} if work.kept else {}),
        **sums.metrics(),
        **metrics,
        **check_unknown(tokenizer.counts, "texts"),
    }


def _check_options(of: Any) -> None:
    """Raises `ConfigError` if options of a call do not go together."""
    defaults = inspect.signature(score_file).parameters
    of_words = any(vars(of)[x] != defaults[x].default for x in ("unit", "punctuation"))
    wrong = {
        "consistency: expected texts and 2 orders or more, no words or pairs": of.consistency
        and (of.words or of.pairs or of.num_orders < 2),
        "pairs: expected input from a file, and no text, words, norms or format": of.pairs
        and (of.input in (None, STANDARD) or of.text or of.words or of.norms or of.format),
        "weights: expected format=nbest, and neither text nor words": of.weights
        and (of.format != "nbest" or of.text or of.words),
        "words: expected, as unit and punctuation are those of words": of_words and not of.words,
        "group: expected pairs or norms, which it groups": of.group and not (of.pairs or of.norms),
        "format: expected input from a file, got standard input": of.format
        and of.input == STANDARD,
    }
    for sentence in (sentence for sentence, is_wrong in wrong.items() if is_wrong):
        raise ConfigError(sentence)


def _table(output: str | None, is_table: bool) -> str | None:
    """The path if it is of a table; raises `ConfigError` for another ending."""
    if is_table and output:
        check_ending(output, TABLES)
        return output
    require_json_lines(output)
    return None


def _weights(weights: Sequence[str], chunks: Iterable[list[Row]]) -> dict[str, float]:
    """The weight of each score, which all hypotheses must have."""
    found = {}
    for name, _, value in (weight.partition(":") for weight in weights):
        found[name] = math.nan
        with contextlib.suppress(ValueError):
            found[name] = float(value)
        if not math.isfinite(found[name]):
            raise ConfigError(f"weights: expected NAME:NUMBER, got '{name}:{value}'")
    rows = (row for chunk in chunks for row in chunk)
    for number, row in enumerate(rows, start=1):
        for name in found.keys() - {"lm"}:
            is_number = type(row.get(name)) in (int, float)
            got = shown(row[name]) if name in row else f"the keys {', '.join(row)}"
            require_data(is_number, f"hypothesis {number}", f"a number {name!r}", got)
    return found


def _best(scored: Iterable[_Scored], weights: dict[str, float]) -> list[dict[str, Any]]:
    """The row of each utterance with the largest weighted sum of scores; of equals the first."""
    best: dict[int, dict[str, Any]] = {}
    for each in scored:
        values = {**each.row, "lm": each.score.total}  # Before columns of ours replace theirs.
        row = _text(each)
        row["weighted"] = math.fsum(weight * values[name] for name, weight in weights.items())
        if row["weighted"] > best.setdefault(row["utterance"], row)["weighted"]:
            best[row["utterance"]] = row
    return list(best.values())


def _is_unknown(score: Any) -> bool:
    """Whether all tokens of a text, of which there are some, are unknown or a space."""
    from official.xlnet.tokenization.tokenizer import WORD_START

    return {*score.pieces} - {WORD_START} == {SPECIAL_PIECES[UNK_ID]}


class _Scored(NamedTuple):
    """A row and its score.

    Attributes:
      row: the row.
      score: the score of its text, in its context.
      start: the first character of the text there.
      consistency: how far orders disagree, if that was asked for.
    """

    row: Row
    score: Score
    start: int
    consistency: list[float]


@dataclasses.dataclass
class _Sums:
    """Sums over the texts that have been scored."""

    texts: int = 0
    empty: int = 0
    only_unknown: int = 0
    tokens: int = 0
    log_likelihood: float = 0.0
    order_totals: Any = 0.0
    consistency: Any = 0.0

    def over(self, scored: Iterable[_Scored]) -> Iterator[_Scored]:
        """Adds what passes."""
        for each in scored:
            self.texts += 1
            self.empty += not each.row["text"].strip()
            self.only_unknown += _is_unknown(each.score)
            self.tokens += len(each.score.pieces)
            self.log_likelihood += each.score.total
            self.order_totals = self.order_totals + each.score.order_totals
            self.consistency = self.consistency + np.array(each.consistency)
            yield each

    def metrics(self) -> dict[str, Any]:
        """The metrics of all texts."""
        from official.xlnet.inference.consistency import Consistency
        from official.xlnet.inference.scoring import standard_error

        means = (np.atleast_1d(self.consistency) / max(1, self.texts)).tolist()
        return {
            "tokens": self.tokens,
            "log_likelihood": self.log_likelihood,
            **_error(standard_error(np.atleast_1d(self.order_totals))),
            "perplexity": perplexity(-self.log_likelihood / max(1, self.tokens)),
            **(Consistency(*means)._asdict() if len(means) > 1 else {}),
        }


def _answer(
    scorer: Scorer,
    order: str,
    num_orders: int,
    seed: int,
    context: str | None,
    given: str,
    whole_given: bool,
    has_consistency: bool,
    rows: list[Row],
) -> list[Any]:
    """The scores of texts, as JSON: pieces, log-likelihoods, offsets, totals, consistency."""
    from official.xlnet.inference.consistency import consistency

    texts, targets = zip(*_placed(rows, context, given), strict=True)
    measured: list[Any] = [()] * len(rows)
    if has_consistency:
        measured = consistency(scorer, [row["text"] for row in rows], num_orders, seed)
    scores = scorer.score(texts, order, num_orders, seed, targets=targets, whole_given=whole_given)
    return [
        [x.pieces, x.log_likelihoods.tolist(), x.offsets, x.order_totals.tolist(), values]
        for x, values in zip(scores, measured, strict=True)
    ]


def _scored(answered: Iterable[Any], context: str | None, given: str) -> Iterator[_Scored]:
    """Scores of their JSON, and the rows."""
    from official.xlnet.inference.scoring import Score

    for rows, answers in answered:
        placed = _placed(rows, context, given)
        for row, (text, spans), each in zip(rows, placed, answers, strict=True):
            pieces, log_likelihoods, offsets, totals, measured = each
            offsets, arrays = [*map(tuple, offsets)], map(np.array, (log_likelihoods, totals))
            score = Score(text, pieces, next(arrays), offsets, next(arrays))
            yield _Scored(row, score, spans[0][0] if spans else 0, measured)


def _check_context(row: Row, where: str) -> None:
    context = row.get("context") or ""
    require_data(isinstance(context, str), where, "a string 'context'", repr(context))


def _check_columns(row: Row, where: str) -> None:
    """Raises `ConfigError` if columns have the names of those that `words` writes."""
    from official.xlnet.inference.words import Word

    _check_context(row, where)
    if taken := row.keys() & {field.name for field in dataclasses.fields(Word)}:
        raise ConfigError(
            f"{where}: expected a table without the columns that words writes, got "
            f"{', '.join(sorted(taken))}; rename them"
        )


def _pair_rows(path: str, group: str | None) -> tuple[list[Row], list[str]]:
    """First the good rows, then the bad ones; for a suite its rows and predictions."""
    from official.xlnet.inference.pairs import suite_margins
    from official.xlnet.inference.scoring import Score

    if suite := read_suite(path):
        rows, formulas = suite
        suite_margins(rows, len(rows) * [Score("", [], np.zeros(0))], formulas)  # A wrong formula.
        return suite
    pairs = read_text_rows([], path, ("good", "bad"))
    if group:
        _column("group", group, pairs)
    return [{**row, "text": row[side]} for side in ("good", "bad") for row in pairs], []


def _placed(
    rows: list[Row], context: str | None, given: str
) -> list[tuple[str, list[tuple[int, int]]]]:
    """Each text in its context, and the spans of characters to score in it."""
    from official.xlnet.inference.text_parts import in_context

    return [
        in_context(row["text"], fixed, given if fixed else "left")
        for row in rows
        for fixed in [(row.get("context") if context is None else context) or ""]
    ]


def _text(scored: _Scored) -> dict[str, Any]:
    """The row of a text."""
    from official.xlnet.inference.consistency import Consistency

    row, result, _, measured = scored
    return {
        **row,
        "tokens": result.pieces,
        "log_likelihoods": result.log_likelihoods.tolist(),
        "log_likelihood": result.total,
        "total": result.total,
        **_error(result.standard_error),
        **({"mixture": mixture._asdict()} if (mixture := result.mixture()) else {}),
        **(Consistency(*measured)._asdict() if measured else {}),
        **({"only_unknown": True} if _is_unknown(result) else {}),
    }


def _error(value: float | None) -> dict[str, float]:
    return {} if value is None else {"standard_error": value}


def _words(scored: Iterable[_Scored], punctuation: str, unit: str) -> Iterator[dict[str, Any]]:
    """The rows of the words of texts."""
    from official.xlnet.inference.words import words_of

    for number, (row, result, first, _) in enumerate(scored, start=1):
        columns = {name: row[name] for name in row if name not in ("text", "context")}
        for word in words_of(result, punctuation, unit):
            # Characters count from the start of the text.
            place = {"start": word.start - first, "end": word.end - first}
            yield {"text_id": number, **columns, **dataclasses.asdict(word), **place}


def _pairs(
    scored: list[_Scored], formulas: list[str], group: str | None, seed: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """A row for each pair, or prediction of a suite, with its difference; and the metrics."""
    from official.xlnet.inference.pairs import pair_metrics, suite_margins

    rows, scores = [each.row for each in scored], [each.score for each in scored]
    if formulas:
        # Regions count characters from the start of the text, not of its context.
        for score, start in ((each.score, each.start) for each in scored):
            score.offsets[:] = [(first - start, end - start) for first, end in score.offsets]
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


def _norm_columns(
    of_texts: Iterable[Row], name: str, group: str | None
) -> tuple[np.ndarray, list[Any]]:
    """The norms of texts, and their groups."""
    import pandas as pd

    rows = [*of_texts]
    texts = _column("norms", name, rows)
    norms = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(float)
    for number in np.flatnonzero(~np.isfinite(norms))[:1]:
        place = f"row {number + 1}, column {name!r}"
        raise DataError(f"{place}: expected a number, got {texts[number]!r}")
    return norms, _column("group", group, rows) if group else []


def _correlations(scored: list[_Scored], norms: np.ndarray, groups: list[Any]) -> dict[str, Any]:
    from official.xlnet.inference.pairs import norm_correlations

    return norm_correlations([each.score.total for each in scored], norms.tolist(), groups)


def _column(flag: str, name: str, rows: list[dict[str, Any]]) -> list[Any]:
    require(all(name in row for row in rows), flag, "a column of the input", name)
    return [row[name] for row in rows]
