"""Readers of ranking data: tables, and folders with TREC run and relevance judgement files.

A table has the columns `query`, `document` and `relevance`, and optionally `query_id` and
`document_id`. Two tables of GLUE are also accepted: of QNLI, the sentence is the document, and
`entailment` is relevance 1; of WNLI, the second sentence, which puts a candidate in the place of a
pronoun of the first, is the document, and the label is its relevance.

A folder contains `queries.tsv` and `documents.tsv` (id, tab, text), TREC relevance judgements
`qrels`, and optionally a TREC `run` with the documents to rank. The best
`task.rerank_depth` of each query are read. Without a `run`, the documents in `qrels` are ranked.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from data_prep.tasks.rows import (
    MAX_NUMBER,
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
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.schema import shown
from official.xlnet.files.text import open_text
from official.xlnet.tasks.ranking import RankingConfig, RankingExample
from official.xlnet.tasks.ranking.metrics import ranking_order

_RELEVANCE = {"entailment": 1, "not_entailment": 0}  # Of the labels of QNLI.
_HIGHEST_GRADE = 100.0  # Gains are powers of two of it.


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
            row = {"query": row["question"], "document": row["sentence"], **row}
            if "label" in row and "relevance" not in row and reading.with_labels:
                label = row["label"]  # In other forms of QNLI, 0 is entailment.
                if label not in tuple(_RELEVANCE):
                    raise WrongRowError(
                        f"expected {' or '.join(_RELEVANCE)} in 'label', got {shown(label)}; a "
                        "column 'relevance' has numbers"
                    )
                row["relevance"] = _RELEVANCE[label]
        if {"sentence1", "sentence2"} <= row.keys():
            row = {"query": row["sentence1"], "document": row["sentence2"], **row}
            if "label" in row:
                label = row["label"]
                row = {"relevance": _RELEVANCE.get(str(label), label), **row}
        for column in ("query", "document", *(("relevance",) if reading.with_labels else ())):
            if column not in row and line == 1:
                raise DataError(f"{reading.path}: expected a column {column!r}, got {listed(row)}")
        query = text(row, "query")
        return RankingExample(
            id=row_id(row, "document_id", line),
            query_id=query if row.get("query_id") in (None, "") else row_id(row, "query_id", line),
            query=query,
            document=text(row, "document"),
            relevance=number(row, "relevance", _HIGHEST_GRADE) if reading.with_labels else None,
        )

    return usable(reading, read_rows(reading), example_of)


@register_reader("ranking", folder=True)
def read_trec(reading: Reading) -> Iterator[RankingExample]:
    """Reads a folder in TREC format; unjudged documents have grade 0.

    Args:
      reading: the folder and reading options.

    Yields:
      One example per query and document.

    Raises:
      DataError: a file is invalid, or a text is missing in strict mode.
    """
    run, judgements, query_file, document_file = (
        os.path.join(reading.path, name)
        for name in ("run", "qrels", "queries.tsv", "documents.tsv")
    )
    judged, depth = {}, reading.settings.settings(RankingConfig).rerank_depth or None
    if reading.with_labels or not os.path.exists(run):
        judged = _read_columns(judgements, 4, score_column=3, most=_HIGHEST_GRADE)
    candidates, grades = judged, judged if reading.with_labels else {}
    if os.path.exists(run):
        scores_of = _read_columns(run, 6, score_column=4, most=MAX_NUMBER)
        candidates = {
            query: {document: scores[document] for document in ranking_order(scores)[:depth]}
            for query, scores in scores_of.items()
        }
    queries = _read_texts(query_file, candidates)
    documents = _read_texts(document_file, {d for ranked in candidates.values() for d in ranked})
    for query, ranked in candidates.items():
        if reading.with_labels and query not in grades:
            reading.counts["queries_without_judgements"] += 1
            continue
        of_query = grades.get(query, {})
        not_ranked = tuple(
            (document, grade)
            for document, grade in of_query.items()
            if document not in ranked or document not in documents
        )
        for document in ranked:
            if query not in queries or document not in documents:
                reading.reject(
                    "missing_texts",
                    f"{reading.path}: query {query}, document {document}: expected both texts",
                )
                continue
            yield RankingExample(
                id=document,
                query_id=query,
                query=queries[query],
                document=documents[document],
                relevance=of_query.get(document, 0.0) if reading.with_labels else None,
                not_ranked=not_ranked,
            )


def _read_texts(path: str, wanted: Collection[str]) -> dict[str, str]:
    """Reads the texts of some ids from a file of tab-separated ids and texts."""
    texts: dict[str, str] = {}
    for where, line in _lines(path):
        name, tab, content = line.rstrip("\r\n").partition("\t")
        if not tab:  # A message for each of millions of lines takes as long as reading them.
            raise DataError(f"{where}: expected an id, a tab and a text, got {shown(line)}")
        is_only = texts.get(name, content) == content
        require_data(is_only, where, f"one text for {name!r}", "another one")
        if name in wanted:
            texts[name] = content
    return texts


def _read_columns(
    path: str, num_columns: int, score_column: int, most: float
) -> dict[str, dict[str, float]]:
    """Reads a TREC file: `query Q0 document rank score tag` of runs, `query 0 document grade`.

    Returns:
      {query: {document: score or grade}}.
    """
    table: dict[str, dict[str, float]] = {}
    for where, line in _lines(path):
        fields = line.split()
        if not fields:
            continue
        is_row = len(fields) == num_columns
        require_data(is_row, where, f"{num_columns} columns", shown(line.strip()))
        query, _, document = fields[:3]
        try:
            value = number({"score": fields[score_column]}, "score", most)
        except WrongRowError as error:
            raise DataError(f"{where}: {error}") from None
        documents = table.setdefault(query, {})
        is_new = document not in documents
        require_data(is_new, where, "each document once for a query", f"{document!r} again")
        documents[document] = value
    return table


def _lines(path: str) -> Iterator[tuple[str, str]]:
    """Yields the place of each line, for messages, and the line."""
    with open_text(path) as file:
        yield from ((f"{path}, line {n}", line) for n, line in enumerate(file, start=1))
