"""Readers of folders in the formats of BEIR and TREC.

A folder contains `queries.tsv` and `documents.tsv` (id, tab, text), TREC relevance judgements
`qrels`, and optionally a TREC `run` with the documents to rank. The best
`task.rerank_depth` of each query are read. Without a `run`, the documents in `qrels` are ranked.

BEIR's folders have `queries.jsonl` and `corpus.jsonl` (`_id`, `title`, `text`), and one file of
judgements for each split: the path of such a file, `FOLDER/qrels/test.tsv`, reads its queries.

Any of these files may be compressed, as `corpus.jsonl.gz`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence

from data_prep.tasks.rows import MAX_NUMBER, WrongRowError, number
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.compression import EXTENSIONS, ending
from official.xlnet.files.schema import shown
from official.xlnet.projects.search.documents import beir_texts, numbered_lines, trec_texts
from official.xlnet.projects.search.settings import RerankConfig
from official.xlnet.tasks.ranking import RankingExample
from official.xlnet.tasks.ranking.metrics import ranking_order
from official.xlnet.tasks.ranking.reader import HIGHEST_GRADE

# Names of the columns of query, document and grade or score, in small letters with `_`.
_NAMED_COLUMNS = (
    ("query_id", "qid", "query", "topic"),
    ("corpus_id", "document_id", "doc_id", "docid", "docno", "document", "pid"),
    ("score", "relevance", "rel", "grade", "label"),
)
_JUDGEMENT_WIDTHS = (3, 4)  # Numbers of columns.
_RUN_WIDTHS = (6,)
Scores = Mapping[str, Mapping[str, float]]  # {query: {document: score or grade}}


@register_reader("ranking", folder=True)
def read_folder(reading: Reading) -> Iterator[RankingExample]:
    """Reads a folder in the format of TREC or BEIR; unjudged documents have grade 0.

    Args:
      reading: the folder and reading options.

    Yields:
      One example per query and document.

    Raises:
      DataError: a file is invalid, or a text is missing in strict mode.
    """
    return _examples(reading, reading.path, None)


@register_reader("ranking/qrels", folder=True)
def read_split(reading: Reading) -> Iterator[RankingExample]:
    """Reads the queries of one file of judgements, `FOLDER/qrels/SPLIT.tsv`; see `read_folder`.

    Args:
      reading: the file and reading options.
    """
    folder = os.path.dirname(os.path.dirname(os.path.abspath(reading.path)))
    return _examples(reading, folder, reading.path)


def _examples(reading: Reading, folder: str, split: str | None) -> Iterator[RankingExample]:
    """Yields the candidates of each query of a folder, or of one file of its judgements."""
    run_file = _file_of(folder, "run")
    has_run = run_file is not None
    judgements: Scores | None = None
    if reading.with_labels or split or not has_run:
        judgement_file = split or _only_split(folder)
        judgements = _read_columns(judgement_file, _JUDGEMENT_WIDTHS, -1, HIGHEST_GRADE)
    candidates = judgements or {}
    if run_file is not None:
        candidates = _candidates_of_run(reading, run_file, judgements)
    queries = _read_texts(folder, "queries.jsonl", "queries.tsv", candidates)
    wanted = {document for ranked in candidates.values() for document in ranked}
    documents = _read_texts(folder, "corpus.jsonl", "documents.tsv", wanted)
    for query, ranked in candidates.items():
        grades: Mapping[str, float] = {}
        if judgements and reading.with_labels:
            grades = judgements[query]
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


def _candidates_of_run(reading: Reading, run_file: str, judgements: Scores | None) -> Scores:
    """The best documents of each query in a run, with their scores; of judged queries alone."""
    depth = reading.settings.settings(RerankConfig).rerank_depth or None
    run = _read_columns(run_file, _RUN_WIDTHS, 4, MAX_NUMBER)
    candidates = {}
    for query, scores in run.items():
        if judgements is None or query in judgements:
            best = ranking_order(scores)[:depth]
            candidates[query] = {document: scores[document] for document in best}
    if len(candidates) < len(run):
        reading.counts["queries_without_judgements"] += len(run) - len(candidates)
    return candidates


def _file_of(folder: str, name: str) -> str | None:
    """Returns the path of a file of a folder, which may be compressed; None: there is none."""
    for extension in ("", *EXTENSIONS):
        path = os.path.join(folder, name + extension)
        if os.path.exists(path):
            return path
    return None


def _only_split(folder: str) -> str:
    """The file of judgements of a folder."""
    path = _file_of(folder, "qrels")
    require_data(path is not None, folder, "judgements in qrels, or a run", "neither")
    assert path is not None
    if not os.path.isdir(path):
        return path
    splits = sorted(name for name in os.listdir(path) if ending(name) == ".tsv")
    got = f"{', '.join(splits) or 'none'}; pass the path of one, such as {path}/test.tsv"
    require_data(len(splits) == 1, path, "one file of judgements", got)
    return os.path.join(path, splits[0])


def _read_texts(folder: str, beir: str, trec: str, wanted: Collection[str]) -> dict[str, str]:
    """Reads the texts of some ids from the file of BEIR, if there is one, or of TREC."""
    texts: dict[str, str] = {}
    beir_path, trec_path = _file_of(folder, beir), _file_of(folder, trec)
    if beir_path is not None:
        rows = beir_texts(beir_path)
    else:
        require_data(trec_path is not None, folder, f"{beir} (BEIR) or {trec} (TREC)", "neither")
        rows = trec_texts(str(trec_path))
    for where, name, content in rows:
        is_only = texts.get(name, content) == content
        require_data(is_only, where, f"one text for {name!r}", "another one")
        if name in wanted:
            texts[name] = content
    return texts


def _read_columns(
    path: str, widths: tuple[int, ...], score_column: int, most: float
) -> dict[str, dict[str, float]]:
    """Reads a TREC file: `query Q0 document rank score tag` of runs, `query 0 document grade`.

    Judgements may lack the second column, and both may begin with the names of their columns, which
    then say their order.

    Returns:
      {query: {document: score or grade}}.
    """
    table: dict[str, dict[str, float]] = {}
    places: list[int] | None = None
    header: list[str] = []
    for where, line in numbered_lines(path):
        fields = line.split()
        if fields == header or not fields:  # Of files one after the other, each has a header.
            continue
        named_places = None if table else _named_places(fields)
        if named_places is not None:
            places, header, widths = named_places, fields, (len(fields),)
            continue
        expected = f"{' or '.join(map(str, widths))} columns"
        require_data(len(fields) in widths, where, expected, shown(line.strip()))
        widths = (len(fields),)  # All lines are alike.
        query_place, document_place, score_place = places or [
            0,
            min(2, len(fields) - 2),
            score_column,
        ]
        query, document = fields[query_place], fields[document_place]
        try:
            value = number({"score": fields[score_place]}, "score", most)
        except WrongRowError as error:
            raise DataError(f"{where}: {error}") from None
        documents = table.setdefault(query, {})
        is_new = document not in documents
        require_data(is_new, where, "each document once for a query", f"{document!r} again")
        documents[document] = value
    return table


def _named_places(fields: Sequence[str]) -> list[int] | None:
    """The places of query, document and score in a line of names; None for another line."""
    names = [field.lower().replace("-", "_") for field in fields]
    places = []
    for known_names in _NAMED_COLUMNS:
        known = [place for place, name in enumerate(names) if name in known_names]
        if len(known) != 1:
            return None
        places += known
    return places
