"""The work of `mutual_information`, from files to files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from data_prep.tasks.text_rows import Row
from official.xlnet.inference.scoring import Scorer
from official.xlnet.jobs.file_scoring import (
    FileScoring,
    ScoredRow,
    ScoringCall,
    UnscoredRow,
)
from official.xlnet.projects.any_order.words.information import WordPair, mutual_information
from official.xlnet.projects.any_order.words.tables import (
    chunks_for_table,
    other_columns,
    write_table,
)


@dataclasses.dataclass(frozen=True)
class InformationCall(ScoringCall):
    """The arguments of `mutual_information`."""

    format: str | None
    distance: int
    unit: str
    punctuation: str

    def written_columns(self) -> set[str]:
        return {"text_id", *(field.name for field in dataclasses.fields(WordPair))}


def measure_information(call: InformationCall) -> dict[str, Any]:
    """Writes a row for each two words; see `verbs.mutual_information_file`."""
    chunks, num_rows = chunks_for_table(call, call.format)

    def measure(scorer: Scorer, rows: list[Row]) -> list[Any]:
        texts, spans = zip(*(call.placed(row) for row in rows), strict=True)
        options = (call.distance, call.punctuation, call.unit)
        pairs_of_texts = mutual_information(scorer, texts, *options, targets=spans)
        return [[dataclasses.astuple(pair) for pair in pairs] for pairs in pairs_of_texts]

    job = FileScoring(call, chunks, num_rows, measure)
    job.require_one_window(lambda row: call.placed(row)[0], "mutual information")
    gaps: list[float] = []

    def pair_rows(scored: Iterable[ScoredRow | UnscoredRow]) -> Iterator[dict[str, Any]]:
        for text_number, text in enumerate(scored, start=1):
            columns: dict[str, Any] = {"text_id": text_number}
            if isinstance(text, UnscoredRow):
                yield columns | text.columns()
                continue
            columns |= other_columns(text.row)
            for values in text.measured:
                pair = WordPair(*values)
                gaps.append(abs(pair.information - pair.reversed_information))
                yield {**columns, **dataclasses.asdict(pair)}

    with job.scored() as scored:
        write_table(call.output, pair_rows(scored))
    metrics = {"pairs": len(gaps), "mean_gap": float(np.mean(gaps)) if gaps else None}
    return job.results(metrics)
