"""Readers of ranking data: tables, and folders with TREC run and relevance judgement files.

A table has the columns `query`, `document` and `relevance`, and optionally `query_id` and
`document_id`. Two tables of GLUE are also accepted: of QNLI, the sentence is the document, and
`entailment` is relevance 1; of WNLI, the second sentence, which puts a candidate in the place of a
pronoun of the first, is the document, and the label is its relevance.

A folder contains `queries.tsv` and `documents.tsv` (id, tab, text), TREC relevance judgements
`qrels`, and optionally a TREC `run` with the documents to rank. The best
`task.rerank_depth` of each query are read. Without a `run`, the documents in `qrels` are ranked.

BEIR's folders have `queries.jsonl` and `corpus.jsonl` (`_id`, `title`, `text`), and one file of
judgements for each split: the path of such a file, `FOLDER/qrels/test.tsv`, reads its queries.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from data_prep.tasks.row_formats import read_file
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
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.schema import shown
from official.xlnet.files.text import open_text
from official.xlnet.tasks.ranking import RankingConfig, RankingExample
from official.xlnet.tasks.ranking.metrics import ranking_order

_RELEVANCE = {"entailment": 1, "not_entailment": 0}  # Of the labels of QNLI.
_HIGHEST_GRADE = 100.0  # Gains are powers of two of it.
_BEIR_HEADER = ["query-id", "corpus-id", "score"]


@register_reader("ranking")
def read_ranking(reading: Reading) -> Iterator[RankingExample]:
    """Reads a table of queries and documents, or the judgements of a split in BEIR's folder.

    Args:
      reading: the file and reading options.

    Yields:
      One example per row.

    Raises:
      DataError: a column is missing, or a row is invalid in strict mode.
    """
    folder, kind = os.path.split(os.path.dirname(os.path.abspath(reading.path)))
    if reading.rows is None and kind == "qrels":
        return _candidates(reading, folder, reading.path)

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
    """Reads a folder in the format of TREC or BEIR; unjudged documents have grade 0.

    Args:
      reading: the folder and reading options.

    Yields:
      One example per query and document.

    Raises:
      DataError: a file is invalid, or a text is missing in strict mode.
    """
    return _candidates(reading, reading.path, None)


def _candidates(reading: Reading, folder: str, split: str | None) -> Iterator[RankingExample]:
    """Yields the candidates of each query of a folder, or of one file of its judgements."""
    run, depth = (
        os.path.join(folder, "run"),
        reading.settings.settings(RankingConfig).rerank_depth or None,
    )
    judged, has_run = None, os.path.exists(run)
    if reading.with_labels or split or not has_run:
        judged = _read_columns(split or _only_split(folder), (3, 4), -1, _HIGHEST_GRADE)
    candidates = judged or {}
    if has_run:
        scores_of = _read_columns(run, (6,), 4, MAX_NUMBER)
        candidates = {
            query: {document: scores[document] for document in ranking_order(scores)[:depth]}
            for query, scores in scores_of.items()
            if judged is None or query in judged
        }
        if without := len(scores_of) - len(candidates):
            reading.counts["queries_without_judgements"] += without
    queries = _read_texts(folder, "queries.jsonl", "queries.tsv", candidates)
    wanted = {document for ranked in candidates.values() for document in ranked}
    documents = _read_texts(folder, "corpus.jsonl", "documents.tsv", wanted)
    for query, ranked in candidates.items():
        grades = judged[query] if judged and reading.with_labels else {}
        not_ranked = tuple(
            (document, grade)
            for document, grade in grades.items()
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
                relevance=grades.get(document, 0.0) if reading.with_labels else None,
                not_ranked=not_ranked,
                run_score=ranked[document] if has_run else None,
            )


def _only_split(folder: str) -> str:
    """The file of judgements of a folder."""
    path = os.path.join(folder, "qrels")
    if not os.path.isdir(path):
        return path
    splits = sorted(name for name in os.listdir(path) if name.endswith(".tsv"))
    got = f"{', '.join(splits) or 'none'}; pass the path of one, such as {path}/test.tsv"
    require_data(len(splits) == 1, path, "one file of judgements", got)
    return os.path.join(path, splits[0])


def _read_texts(folder: str, beir: str, trec: str, wanted: Collection[str]) -> dict[str, str]:
    """Reads the texts of some ids from the file of BEIR, if there is one, or of TREC."""
    texts: dict[str, str] = {}
    is_beir, path = os.path.exists(os.path.join(folder, beir)), os.path.join(folder, trec)
    rows = _beir_texts(os.path.join(folder, beir)) if is_beir else _trec_texts(path)
    for where, name, content in rows:
        is_only = texts.get(name, content) == content
        require_data(is_only, where, f"one text for {name!r}", "another one")
        if name in wanted:
            texts[name] = content
    return texts


def _trec_texts(path: str) -> Iterator[tuple[str, str, str]]:
    """Yields the place, id and text of each line of tab-separated ids and texts."""
    for where, line in _lines(path):
        name, tab, content = line.rstrip("\r\n").partition("\t")
        if not tab:  # A message for each of millions of lines takes as long as reading them.
            raise DataError(f"{where}: expected an id, a tab and a text, got {shown(line)}")
        yield where, name, content


def _beir_texts(path: str) -> Iterator[tuple[str, str, str]]:
    """Yields the place, id and text of each line of JSON; the title is part of the text."""
    for line, row in enumerate(read_file(Reading(path, TaskConfig(), strict=True)), start=1):
        where = f"{path}, line {line}"
        try:
            parts = [text(row, key) for key in ("title", "text") if row.get(key) or key == "text"]
            yield where, text(row, "_id"), " ".join(filter(None, parts))
        except WrongRowError as error:
            raise DataError(f"{where}: {error}") from None


def _read_columns(
    path: str, widths: tuple[int, ...], score_column: int, most: float
) -> dict[str, dict[str, float]]:
    """Reads a TREC file: `query Q0 document rank score tag` of runs, `query 0 document grade`.

    Judgements may lack the second column, and begin with the header of BEIR.

    Returns:
      {query: {document: score or grade}}.
    """
    table: dict[str, dict[str, float]] = {}
    for where, line in _lines(path):
        fields = line.split()
        if not fields or fields == _BEIR_HEADER:
            continue
        expected = f"{' or '.join(map(str, widths))} columns"
        require_data(len(fields) in widths, where, expected, shown(line.strip()))
        widths = (len(fields),)  # All lines are alike.
        query, document = fields[0], fields[min(2, len(fields) - 2)]
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
