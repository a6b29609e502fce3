"""The work of `rescore`: scores hypotheses, and takes the best of each list."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from data_prep.tasks.rows import WrongRowError, number, numbers
from data_prep.tasks.text_rows import Row
from official.xlnet.data.json_lines import write_json_lines
from official.xlnet.data.result_files import require_json_lines
from official.xlnet.errors import ConfigError, require_config
from official.xlnet.inference.text_parts import Span
from official.xlnet.jobs.file_scoring import (
    FileScoring,
    ScoredRow,
    ScoringCall,
    all_scored,
)
from official.xlnet.projects.rescoring.formats import empty_lists

_OF_THE_MODEL = {"lm", "length"}  # Names in weights that are not of the hypotheses.


@dataclasses.dataclass(frozen=True)
class RescoringCall(ScoringCall):
    """The arguments of `rescore`."""

    format: str
    weights: Sequence[str]
    drop: Sequence[str]

    def written_columns(self) -> set[str]:
        columns = super().written_columns()
        if not self.weights:
            return columns
        names = {"length"} & weights_of(self.weights).keys()
        return columns | {"lm", "weighted"} | names  # The model's names in weights.

    def placed(self, row: Row) -> tuple[str, list[Span]]:
        if not self.drop:
            return super().placed(row)
        return super().placed({**row, "text": without_words(row["text"], self.drop)})


def without_words(text: str, words: Sequence[str]) -> str:
    """Returns a text without some of its words, which stand between white space.

    Example:
      >>> without_words("<eps> the [laughter]  cat", ["<eps>", "[laughter]"])
      'the  cat'
    """
    parts = re.split(r"(\s+)", text)
    kept = []
    for word, space in itertools.zip_longest(parts[::2], parts[1::2], fillvalue=""):
        if word not in words:
            kept += [word, space]
    return "".join(kept).strip() if len(kept) < len(parts) else text


def rescore_hypotheses(call: RescoringCall) -> dict[str, Any]:
    """Scores hypotheses; see `verbs.rescore_file`."""
    require_json_lines(call.output)
    weights = weights_of(call.weights)
    chunks, num_rows = call.chunks(format=call.format)
    held = [*chunks]  # All of them are checked before any is scored.
    _require_scores(str(call.input), [row for chunk in held for row in chunk], weights)
    job = FileScoring(call, held, num_rows)
    job.require_window_of_order()
    with job.scored() as scored:
        if weights:
            best = _best(all_scored(scored), weights, empty_lists(str(call.input)))
            write_json_lines(call.output, best)
        else:
            write_json_lines(call.output, ({**text.columns(), **text.marks()} for text in scored))
    return job.results()


def weights_of(arguments: Sequence[str]) -> dict[str, float]:
    """The weight of each score.

    Example:
      >>> weights_of(["am:1", "lm:0.7"])
      {'am': 1.0, 'lm': 0.7}
    """
    weights: dict[str, float] = {}
    for argument in arguments:
        name, _, value = argument.partition(":")
        require_config(name not in weights, "weights", "each name once", f"{name!r} twice")
        try:
            weights[name] = number({"weight": value}, "weight")
        except WrongRowError:
            raise ConfigError(f"weights: expected NAME:NUMBER, got '{name}:{value}'") from None
    return weights


def _require_scores(path: str, rows: Sequence[Row], weights: Mapping[str, float]) -> None:
    """Raises `DataError` unless all hypotheses have the scores that have a weight."""
    for name in weights.keys() - _OF_THE_MODEL:
        numbers(rows, name, path, "hypothesis")


def _best(
    scored: Iterable[ScoredRow],
    weights: Mapping[str, float],
    empty: Mapping[int, dict[str, Any]],
) -> list[dict[str, Any]]:
    """The row of each utterance with the largest weighted sum of scores; of equals the first.

    Args:
      scored: the hypotheses.
      weights: the weight of each score.
      empty: the rows of utterances without hypotheses, which have no sum.
    """
    best = {utterance: {**row, "weighted": None} for utterance, row in empty.items()}
    for hypothesis in scored:
        values = {
            **hypothesis.row,
            "lm": hypothesis.score.total,
            "length": len(hypothesis.score.pieces),
        }
        row = {**hypothesis.columns(), **hypothesis.marks()}
        products = [weight * number(values, name) for name, weight in weights.items()]
        row["weighted"] = math.fsum(products)
        utterance = row["utterance"]
        if utterance not in best or row["weighted"] > best[utterance]["weighted"]:
            best[utterance] = row
    return [best[utterance] for utterance in sorted(best)]
