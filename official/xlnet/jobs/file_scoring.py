"""Scores the texts of files: what `score` and other verbs that score texts have in common."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from data_prep.tasks.text_rows import Row, text_chunks
from official.xlnet.configs.registry import ORDER_ESTIMATES
from official.xlnet.data.json_lines import write_json_lines
from official.xlnet.data.result_files import require_json_lines
from official.xlnet.data.text_counts import check_unknown, log_counts
from official.xlnet.data.text_files import Answers, WrongRow
from official.xlnet.errors import DataError, require_data
from official.xlnet.inference.language_model import loaded
from official.xlnet.inference.orders import OF_WINDOWS
from official.xlnet.inference.score import Score, standard_error
from official.xlnet.inference.scoring import Scorer
from official.xlnet.inference.text_parts import Span, in_context
from official.xlnet.jobs.identity import identity_of_call
from official.xlnet.runtime.perplexity import perplexity
from official.xlnet.tokenization.special_tokens import SPECIAL_PIECES, UNK_ID, WORD_START

CHUNK_SIZE = 256  # Texts that are scored together, and lost when the command is killed.


@dataclasses.dataclass(frozen=True)
class ScoringCall:
    """The arguments of a call that scores texts; see `official.xlnet.api.score.score_file`.

    A verb with more arguments has a subclass.
    """

    model: str
    text: Sequence[str]
    input: str | None
    output: str | None
    order: str
    num_orders: int
    seed: int
    context: str | None
    given: str
    whole_given: bool

    def written_columns(self) -> set[str]:
        """The columns that are written beside those of the input, in some or all rows."""
        columns = {"tokens", "log_likelihoods", "log_likelihood", "total", "only_unknown"}
        return columns | {"standard_error", *ORDER_ESTIMATES.names()}

    def chunks(
        self, needed: Sequence[str] = ("text",), format: str | None = None
    ) -> tuple[Iterator[list[Row]], int]:
        """Returns the rows of the input in chunks, and their number; see `text_chunks`.

        Args:
          needed: columns of text that each row has to have.
          format: the format of the input file; None: by its name.
        """
        return text_chunks(
            self.text,
            self.input,
            CHUNK_SIZE,
            needed,
            check_context,
            format,
            written=self.written_columns(),
        )

    def scorer(self) -> Any:
        """Returns the model: a `Scorer`, or another object that `scores` takes."""
        return Scorer(*loaded(self.model, takes_masked=True))

    def scores(
        self,
        scorer: Any,
        texts: Sequence[str],
        targets: Sequence[Sequence[Span]],
        with_entropies: bool = False,
    ) -> list[Score]:
        """Returns the scores of the spans of some texts.

        Args:
          scorer: what `scorer` has returned.
          texts: the texts.
          targets: the spans of each.
          with_entropies: whether to compute `Score.entropies`, too.
        """
        return scorer.score(
            texts,
            self.order,
            self.num_orders,
            self.seed,
            targets=targets,
            whole_given=self.whole_given,
            with_entropies=with_entropies,
        )

    def placed(self, row: Row) -> tuple[str, list[Span]]:
        """Returns the text of a row in its context, and the spans of characters to score in it."""
        context = self.context
        if context is None:
            context = row.get("context")
        if not context:
            return in_context(row["text"], "")
        return in_context(row["text"], context, self.given)


class ScoredRow(NamedTuple):
    """A row and the score of its text.

    Attributes:
      row: the columns of the input.
      score: the score of the text, in its context.
      start: the first character of the text there.
      measured: what `FileScoring` has measured of the text besides.
    """

    row: Row
    score: Score
    start: int
    measured: Any

    @property
    def is_unknown(self) -> bool:
        """Whether the text has tokens, and all of them are unknown or a space."""
        return {*self.score.pieces} - {WORD_START} == {SPECIAL_PIECES[UNK_ID]}

    def columns(self) -> dict[str, Any]:
        """Returns the columns of the input and the columns of the score, as JSON."""
        score = self.score
        columns = dict(self.row)
        columns["tokens"] = score.pieces
        columns["log_likelihoods"] = score.log_likelihoods.tolist()
        columns["log_likelihood"] = columns["total"] = score.total
        if score.standard_error is not None:
            columns["standard_error"] = score.standard_error
            for name in ORDER_ESTIMATES.names():
                columns[name] = ORDER_ESTIMATES[name](score.order_totals)._asdict()
        return columns

    def marks(self) -> dict[str, bool]:
        """Returns the column `only_unknown` for a text of unknown tokens alone."""
        return {"only_unknown": True} if self.is_unknown else {}


@dataclasses.dataclass(frozen=True)
class UnscoredRow:
    """A row of standard input that cannot be scored, in the place of a `ScoredRow`.

    Attributes:
      wrong: the row, and what is wrong.
    """

    wrong: WrongRow

    def columns(self) -> dict[str, Any]:
        """Returns the columns of the input and `error`, as JSON."""
        return self.wrong.answer()

    def marks(self) -> dict[str, bool]:
        """Returns nothing, as there is no score."""
        return {}


def all_scored(rows: Iterable[ScoredRow | UnscoredRow]) -> list[ScoredRow]:
    """Returns all rows, for a result that is of all of them.

    Args:
      rows: see `FileScoring.scored`.

    Raises:
      DataError: one of them cannot be scored.
    """
    scored = []
    for row in rows:
        if isinstance(row, UnscoredRow):
            raise DataError(row.wrong.error)
        scored.append(row)
    return scored


class FileScoring:
    """Scores the texts of a call in chunks; a killed call is resumed by the same call.

    The model is loaded when an object is made.

    Args:
      call: the arguments of the call.
      chunks: the rows to score, each with a `text`.
      num_rows: number of all rows; 0 if they come from standard input.
      measure: function of a scorer and rows to further JSON about each row; default: none.

    Attributes:
      scorer: the model.
      num_texts: number of texts that have been scored.
      num_tokens: number of their tokens.
      log_likelihood: sum of their log-likelihoods, in nats.
    """

    def __init__(
        self,
        call: ScoringCall,
        chunks: Iterable[list[Row]],
        num_rows: int,
        measure: Callable[[Scorer, list[Row]], Sequence[Any]] | None = None,
    ):
        self._call = call
        self._chunks = chunks
        self._num_rows = num_rows
        self._measure = measure
        self.scorer = call.scorer()
        self._counts = self.scorer.tokenizer.counts
        self.num_texts = self.num_tokens = 0
        self.log_likelihood = 0.0
        self._num_empty = self._num_unknown = 0
        self._counted_rows: dict[str, int] = {}
        self._order_totals = np.zeros(0)

    def require_one_window(self, texts_of: Callable[[Row], str], purpose: str) -> None:
        """Raises `DataError` if a text of a file is longer than a window, before any is scored.

        Args:
          texts_of: function of a row to its text.
          purpose: of one window, for the error.
        """
        if self._num_rows:
            self._chunks = [*self._chunks]
            source = self._call.input or "text"
            num_before = 0
            for rows in self._chunks:
                places = [f"{source}, row {num_before + n}" for n in range(1, len(rows) + 1)]
                texts = [texts_of(row) for row in rows]
                self.scorer.require_one_window(texts, purpose, places)
                num_before += len(rows)

    def require_window_of_order(self) -> None:
        """The same, if the order of the call is one of texts of a single window."""
        if self._call.order not in OF_WINDOWS:
            purpose = f"order={self._call.order}"
            self.require_one_window(lambda row: self._call.placed(row)[0], purpose)

    @contextlib.contextmanager
    def scored(self) -> Iterator[Iterator[ScoredRow | UnscoredRow]]:
        """Context manager that yields an iterator over the rows with their scores.

        Rows of standard input may be an `UnscoredRow`; those of files are not.
        """
        answers = Answers(
            self._chunks,
            self._answer,
            self._counts,
            total=self._num_rows,
            noun="texts" if self._num_rows else "",
            more=lambda: f", windows: {self.scorer.num_windows}",
        )
        with answers.resuming(self._call.output, identity_of_call()) as answered:
            yield self._counted(answered)
        self._counted_rows = answers.counted()

    def results(self, metrics: dict[str, Any] | None = None) -> dict[str, Any]:
        """Logs the counts of the call; returns them and its metrics.

        Args:
          metrics: further metrics of the verb.
        """
        results: dict[str, Any] = {
            "texts": self.num_texts,
            "empty": self._num_empty,
            "only_unknown": self._num_unknown,
        }
        source = self._call.input or "text"
        log_counts(source, {**results, **self._counts})
        results |= self._counted_rows
        results["tokens"] = self.num_tokens
        results["log_likelihood"] = self.log_likelihood
        error = standard_error(self._order_totals)
        if error is not None:
            results["standard_error"] = error
        results["perplexity"] = None
        if self.num_tokens:
            results["perplexity"] = perplexity(-self.log_likelihood / self.num_tokens)
        results |= metrics or {}
        results |= check_unknown(self._counts, "texts")
        return results

    def _answer(self, rows: list[Row]) -> list[Any]:
        """Scores as JSON: pieces, log-likelihoods, offsets, totals of orders, what is measured.

        Entropies follow if they have been computed.
        """
        measured: Sequence[Any] = [()] * len(rows)
        if self._measure is not None:
            measured = self._measure(self.scorer, rows)
        texts, targets = zip(*(self._call.placed(row) for row in rows), strict=True)
        scores = self._call.scores(self.scorer, texts, targets)
        answers = []
        for score, measurement in zip(scores, measured, strict=True):
            answers.append(
                [
                    score.pieces,
                    score.log_likelihoods.tolist(),
                    score.offsets,
                    score.order_totals.tolist(),
                    measurement,
                ]
            )
            if len(score.entropies):
                answers[-1].append(score.entropies.tolist())
        return answers

    def _counted(
        self, answered: Iterable[tuple[list[Any], list[Any] | None]]
    ) -> Iterator[ScoredRow | UnscoredRow]:
        """Rows and their scores, which are added to the counts."""
        for rows, answers in answered:
            if answers is None:
                yield from map(UnscoredRow, rows)
                continue
            for row, answer in zip(rows, answers, strict=True):
                pieces, log_likelihoods, offsets, order_totals, measured, *entropies = answer
                text, spans = self._call.placed(row)
                score = Score(
                    text,
                    pieces,
                    np.array(log_likelihoods),
                    [(start, end) for start, end in offsets],
                    np.array(order_totals),
                    np.array(entropies[0] if entropies else []),
                )
                start = spans[0][0] if spans else 0
                scored = ScoredRow(row, score, start, measured)
                self._add(scored)
                yield scored

    def _add(self, scored: ScoredRow) -> None:
        score = scored.score
        self.num_texts += 1
        self.num_tokens += len(score.pieces)
        self.log_likelihood += score.total
        self._num_empty += not scored.row["text"].strip()
        self._num_unknown += scored.is_unknown
        if not len(self._order_totals):
            self._order_totals = np.zeros(len(score.order_totals))
        self._order_totals = self._order_totals + score.order_totals


def check_context(row: Row, where: str) -> None:
    """Raises `DataError` if the context of a row is not a string."""
    context = row.get("context") or ""
    require_data(isinstance(context, str), where, "a string 'context'", repr(context))


def score_texts(call: ScoringCall) -> dict[str, Any]:
    """Scores texts; see `official.xlnet.api.score.score_file`."""
    require_json_lines(call.output)
    chunks, num_rows = call.chunks()
    job = FileScoring(call, chunks, num_rows)
    job.require_window_of_order()
    with job.scored() as scored:
        write_json_lines(call.output, ({**row.columns(), **row.marks()} for row in scored))
    return job.results()
