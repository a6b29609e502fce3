"""Reader of ranking data: tables.

A table has the columns `query`, `document` and `relevance`, and optionally `query_id` and
`document_id`. Two tables of GLUE are also accepted: of QNLI, the sentence is the document, and
`entailment` is relevance 1; of WNLI, the second sentence, which puts a candidate in the place of a
pronoun of the first, is the document, and the label is its relevance.
"""

from __future__ import annotations

from collections.abc import Iterator

from data_prep.tasks.rows import (
    Row,
    WrongRowError,
    listed,
    number,
    renamed,
    row_id,
    text,
    usable,
)
from data_prep.tasks.table import read_rows
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError
from official.xlnet.files.schema import shown
from official.xlnet.tasks.ranking import RankingExample

_RELEVANCE = {"entailment": 1, "not_entailment": 0}  # Of the labels of QNLI.
HIGHEST_GRADE = 100.0  # Gains are powers of two of it.


@register_reader("ranking")
def read_ranking(reading: Reading) -> Iterator[RankingExample]:
    """Reads a table of queries and documents.

    Args:
      reading: the file and reading options.

    Yields:
      One example per row.

    Raises:
      DataError: a column is missing, or a row is invalid in strict mode.
    """

    def example_of(row: Row, line: int) -> RankingExample:
        row = renamed(reading, row, ["query", "document"], "relevance")
        if {"question", "sentence"} <= row.keys():
            row = _row_of_qnli(row, reading.with_labels)
        if {"sentence1", "sentence2"} <= row.keys():
            row = _row_of_wnli(row)
        needed_columns = ["query", "document"]
        if reading.with_labels:
            needed_columns.append("relevance")
        for column in needed_columns:
            if column not in row and line == 1:
                raise DataError(f"{reading.path}: expected a column {column!r}, got {listed(row)}")
        query = text(row, "query")
        query_id = query  # Rows of one query are ranked against each other.
        if row.get("query_id") not in (None, ""):
            query_id = row_id(row, "query_id", line)
        relevance = None
        if reading.with_labels:
            relevance = number(row, "relevance", HIGHEST_GRADE, takes_truth_values=True)
        return RankingExample(
            id=row_id(row, "document_id", line),
            query_id=query_id,
            query=query,
            document=text(row, "document"),
            relevance=relevance,
        )

    return usable(reading, read_rows(reading), example_of)


def _row_of_qnli(row: Row, with_labels: bool) -> Row:
    """A row of QNLI under the names of ranking: its sentence is the document."""
    row = {"query": row["question"], "document": row["sentence"], **row}
    if "label" in row and "relevance" not in row and with_labels:
        label = row["label"]  # In other forms of QNLI, 0 is entailment.
        if label not in tuple(_RELEVANCE):
            raise WrongRowError(
                f"expected {' or '.join(_RELEVANCE)} in 'label', got {shown(label)}; a "
                "column 'relevance' has numbers"
            )
        row["relevance"] = _RELEVANCE[label]
    return row


def _row_of_wnli(row: Row) -> Row:
    """A row of WNLI under the names of ranking: its second sentence is the document."""
    row = {"query": row["sentence1"], "document": row["sentence2"], **row}
    if "label" in row:
        label = row["label"]
        row = {"relevance": _RELEVANCE.get(str(label), label), **row}
    return row
