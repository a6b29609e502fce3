"""The work of `words`, `pairs`, `norms` and `consistency`, from files to files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from data_prep.tasks.rows import numbers
from data_prep.tasks.text_rows import Row, read_text_rows
from official.xlnet.configs.validation import require
from official.xlnet.data.json_lines import write_json_lines
from official.xlnet.data.result_files import (
    TABLES,
    check_columns,
    check_ending,
    require_json_lines,
    write_rows,
)
from official.xlnet.data.text_files import WrongRow, batched
from official.xlnet.errors import DataError
from official.xlnet.inference.score import Score
from official.xlnet.inference.scoring import Scorer
from official.xlnet.inference.text_parts import Span
from official.xlnet.jobs import file_scoring
from official.xlnet.jobs.file_scoring import (
    FileScoring,
    ScoredRow,
    ScoringCall,
    UnscoredRow,
    all_scored,
    check_context,
)
from official.xlnet.projects.any_order.consistency import (
    Consistency,
    consistency,
    mean_consistency,
)
from official.xlnet.projects.any_order.pairs import norm_correlations, pair_metrics
from official.xlnet.projects.any_order.pairs.regressions import log_likelihood_gain
from official.xlnet.projects.any_order.pairs.suites import (
    check_predictions,
    read_suite,
    suite_margins,
)
from official.xlnet.projects.any_order.words import Word, words_of
from official.xlnet.projects.any_order.words.ends import WordEnds, surprisals_with_ends
from official.xlnet.projects.any_order.words.tables import (
    chunks_for_table,
    other_columns,
    write_table,
)


@dataclasses.dataclass(frozen=True)
class WordsCall(ScoringCall):
    """The arguments of `words`."""

    format: str | None
    unit: str
    punctuation: str
    word_ends: bool
    entropy: bool

    def written_columns(self) -> set[str]:
        columns = {"text_id", *(field.name for field in dataclasses.fields(Word))}
        if not self.entropy:
            columns.remove("entropy")
        return columns | {"surprisal_with_end"} if self.word_ends else columns

    def scores(
        self,
        scorer: Any,
        texts: Sequence[str],
        targets: Sequence[Sequence[Span]],
        with_entropies: bool = False,
    ) -> list[Score]:
        return super().scores(scorer, texts, targets, with_entropies or self.entropy)


def score_words(call: WordsCall) -> dict[str, Any]:
    """Writes a row for each word; see `verbs.words_file`."""
    chunks, num_rows = chunks_for_table(call, call.format)
    if call.word_ends:
        job = FileScoring(call, chunks, num_rows, _measure_word_ends(call))
        job.require_one_window(lambda row: call.placed(row)[0], "word_ends")
    else:
        job = FileScoring(call, chunks, num_rows)
        job.require_window_of_order()
    with job.scored() as scored:
        write_table(call.output, _word_rows(scored, call))
    return job.results()


def _measure_word_ends(call: WordsCall) -> Callable[[Scorer, list[Row]], Sequence[Any]]:
    """Returns a function of a scorer and rows to `WordEnds` of each row."""
    ends: dict[int, WordEnds] = {}  # Made once, as graphs are kept for it.

    def measure(scorer: Scorer, rows: list[Row]) -> Sequence[Any]:
        word_ends = ends.setdefault(id(scorer), WordEnds(scorer))
        texts, targets = zip(*(call.placed(row) for row in rows), strict=True)
        return [log_p.tolist() for log_p in word_ends(texts, targets, call.whole_given)]

    return measure


def _word_rows(
    scored: Iterable[ScoredRow | UnscoredRow], call: WordsCall
) -> Iterator[dict[str, Any]]:
    """The rows of the words of texts."""
    for text_number, text in enumerate(scored, start=1):
        if isinstance(text, UnscoredRow):
            yield {"text_id": text_number, **text.columns()}
            continue
        columns: dict[str, Any] = {"text_id": text_number, **other_columns(text.row)}
        words = words_of(text.score, call.punctuation, call.unit)
        with_ends: Sequence[float] = []
        if call.word_ends:
            with_ends = surprisals_with_ends(words, text.measured, call.unit)
        for index, word in enumerate(words):
            measured = dataclasses.asdict(word)
            if word.entropy is None:
                del measured["entropy"]  # A column of the input may have this name.
            row = {**columns, **measured}
            if call.word_ends:
                row["surprisal_with_end"] = with_ends[index]
            # Characters count from the start of the text, not of its context.
            row["start"] -= text.start
            row["end"] -= text.start
            yield row


@dataclasses.dataclass(frozen=True)
class ConsistencyCall(ScoringCall):
    """The arguments of `consistency`."""

    format: str | None

    def written_columns(self) -> set[str]:
        return super().written_columns() | {*Consistency._fields}


def score_consistency(call: ConsistencyCall) -> dict[str, Any]:
    """Scores texts, and measures how far orders disagree; see `verbs.consistency_file`."""
    require_json_lines(call.output)
    chunks, num_rows = call.chunks(format=call.format)

    def measure(scorer: Scorer, rows: list[Row]) -> Sequence[Any]:
        return consistency(scorer, [row["text"] for row in rows], call.num_orders, call.seed)

    job = FileScoring(call, chunks, num_rows, measure)
    job.require_one_window(lambda row: row["text"], "consistency")
    measured: list[Consistency] = []

    def columns(scored: Iterable[ScoredRow | UnscoredRow]) -> Iterator[dict[str, Any]]:
        for text in scored:
            if isinstance(text, UnscoredRow):
                yield text.columns()
                continue
            measured.append(Consistency(*text.measured))
            yield {**text.columns(), **measured[-1]._asdict(), **text.marks()}

    with job.scored() as scored:
        write_json_lines(call.output, columns(scored))
    return job.results(mean_consistency(measured))


@dataclasses.dataclass(frozen=True)
class NormsCall(ScoringCall):
    """The arguments of `norms`."""

    norms: str
    group: str | None
    cluster: Sequence[str]
    baseline: Sequence[str]


def score_norms(call: NormsCall) -> dict[str, Any]:
    """Correlates log-likelihoods with a column of the input; see `verbs.norms_file`."""
    require_json_lines(call.output)
    needed = ("context", "text")
    chunks, num_rows = call.chunks(needed)
    held = [*chunks]  # All of them are checked before any is scored.
    rows = [row for chunk in held for row in chunk]
    for row in rows:
        if isinstance(row, WrongRow):
            raise DataError(row.error)
    _column("norms", call.norms, rows)
    norms = numbers(rows, call.norms, call.input or "text")
    groups = _column("group", call.group, rows) if call.group else []
    clusters = [_column("cluster", name, rows) for name in call.cluster]
    baseline = []
    for name in call.baseline:
        _column("baseline", name, rows)
        baseline.append(numbers(rows, name, call.input or "text"))
    job = FileScoring(call, held, num_rows)
    job.require_window_of_order()
    with job.scored() as scored:
        texts = all_scored(scored)
        log_likelihoods = [text.score.total for text in texts]
        metrics = norm_correlations(log_likelihoods, norms, groups, call.seed, clusters)
        if baseline:
            metrics |= log_likelihood_gain(
                np.asarray(norms),
                -np.asarray(log_likelihoods),
                np.column_stack(baseline),
                clusters,
                call.seed,
            )
        write_json_lines(call.output, ({**text.columns(), **text.marks()} for text in texts))
    return job.results(metrics)


@dataclasses.dataclass(frozen=True)
class PairsCall(ScoringCall):
    """The arguments of `pairs`."""

    group: str | None
    cluster: Sequence[str]

    def written_columns(self) -> set[str]:
        return {"good_total", "bad_total", "difference", "only_unknown"}


def score_pairs(call: PairsCall) -> dict[str, Any]:
    """Compares pairs of texts, or the conditions of a suite; see `verbs.pairs_file`."""
    if call.output:
        check_ending(call.output, TABLES)
    assert call.input is not None
    suite = read_suite(call.input)
    if suite:
        rows, formulas, metric = suite
        rows_to_group: Sequence[Row] = check_predictions(rows, formulas, metric)
    else:
        pairs = read_text_rows(
            [], call.input, ("good", "bad"), check_context, written=call.written_columns()
        )
        rows, formulas, metric = _good_then_bad(pairs), [], ""
        rows_to_group = pairs
        if call.output:
            check_columns(call.output, pairs)
    if call.group:
        _column("group", call.group, rows_to_group)
    for name in call.cluster:
        _column("cluster", name, rows_to_group)
    job = FileScoring(call, batched(rows, file_scoring.CHUNK_SIZE), len(rows))
    job.require_window_of_order()
    with job.scored() as scored:
        texts = all_scored(scored)
        if formulas:
            compared, group = _suite_rows(texts, formulas, metric), call.group or "prediction"
        else:
            compared = _pair_rows(pairs, texts[: len(pairs)], texts[len(pairs) :])
            group = call.group or ("UID" if "UID" in compared[0] else "")
        groups = _column("group", group, compared) if group else []
        clusters = [_column("cluster", name, compared) for name in call.cluster]
        differences = [row["difference"] for row in compared]
        metrics = pair_metrics(differences, groups, call.seed, clusters)
        if call.output:
            write_rows(call.output, compared)
    return job.results(metrics)


def _good_then_bad(pairs: Sequence[Row]) -> list[Row]:
    """The rows of pairs with the good text, then those with the bad one."""
    return [{**row, "text": row[side]} for side in ("good", "bad") for row in pairs]


def _pair_rows(
    pairs: Sequence[Row], good: Sequence[ScoredRow], bad: Sequence[ScoredRow]
) -> list[dict[str, Any]]:
    """A row for each pair, with its difference."""
    rows = []
    for pair, one, other in zip(pairs, good, bad, strict=True):
        row = dict(pair)
        row["good_total"] = one.score.total
        row["bad_total"] = other.score.total
        row["difference"] = one.score.total - other.score.total
        if one.is_unknown or other.is_unknown:
            row["only_unknown"] = True
        rows.append(row)
    return rows


def _suite_rows(
    texts: Sequence[ScoredRow], formulas: Sequence[str], metric: str
) -> list[dict[str, Any]]:
    """A row for each prediction of each item of a suite, with its difference."""
    for text in texts:
        # Regions count characters from the start of the text, not of its context.
        spans = [(start - text.start, end - text.start) for start, end in text.score.offsets]
        text.score.offsets[:] = spans
    rows, scores = [text.row for text in texts], [text.score for text in texts]
    return suite_margins(rows, scores, formulas, metric)


def _column(flag: str, name: str, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    require(all(name in row for row in rows), flag, "a column of the input", name)
    return [row[name] for row in rows]
