"""The work of `rescore`: scores hypotheses, and takes the best of each list."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from data_prep.tasks.rows import WrongRowError, number, numbers
from data_prep.tasks.text_rows import Row
from official.xlnet.data.json_lines import write_json_lines
from official.xlnet.data.result_files import require_json_lines
from official.xlnet.errors import ConfigError, require_config
from official.xlnet.jobs.file_scoring import (
    FileScoring,
    ScoredRow,
    ScoringCall,
)


@dataclasses.dataclass(frozen=True)
class RescoringCall(ScoringCall):
    """The arguments of `rescore`."""

    format: str
    weights: Sequence[str]

    def written_columns(self) -> set[str]:
        columns = super().written_columns()
        # The name `lm` in weights is the log-likelihood of the model.
        return columns | {"lm", "weighted"} if self.weights else columns


def rescore_hypotheses(call: RescoringCall) -> dict[str, Any]:
    """Scores hypotheses; see `verbs.rescore_file`."""
    require_json_lines(call.output)
    weights = _weights(call.weights)
    chunks, num_rows = call.chunks(format=call.format)
    held = [*chunks]  # All of them are checked before any is scored.
    _require_scores(str(call.input), [row for chunk in held for row in chunk], weights)
    job = FileScoring(call, held, num_rows)
    job.require_window_of_order()
    with job.scored() as scored:
        if weights:
            write_json_lines(call.output, _best(scored, weights))
        else:
            write_json_lines(call.output, ({**text.columns(), **text.marks()} for text in scored))
    return job.results()


def _weights(arguments: Sequence[str]) -> dict[str, float]:
    """The weight of each score.

    Example:
      >>> _weights(["am:1", "lm:0.7"])
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
    for name in weights.keys() - {"lm"}:
        numbers(rows, name, path)


def _best(scored: Iterable[ScoredRow], weights: Mapping[str, float]) -> list[dict[str, Any]]:
    """The row of each utterance with the largest weighted sum of scores; of equals the first."""
    best: dict[int, dict[str, Any]] = {}
    for hypothesis in scored:
        values = {**hypothesis.row, "lm": hypothesis.score.total}
        row = {**hypothesis.columns(), **hypothesis.marks()}
        products = [weight * number(values, name) for name, weight in weights.items()]
        row["weighted"] = math.fsum(products)
        utterance = row["utterance"]
        if utterance not in best or row["weighted"] > best[utterance]["weighted"]:
            best[utterance] = row
    return list(best.values())
