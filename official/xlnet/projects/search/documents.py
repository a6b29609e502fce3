"""Documents and queries of BEIR and TREC: ids and texts, to rank and to embed."""

from __future__ import annotations

from collections.abc import Iterator

from data_prep.tasks.row_formats import read_file
from data_prep.tasks.rows import Row, WrongRowError, text
from official.xlnet.configs.registry import TEXT_ROW_FORMATS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError
from official.xlnet.files.schema import shown
from official.xlnet.files.text import open_text


@TEXT_ROW_FORMATS.register("beir")
def beir_rows(path: str) -> Iterator[Row]:
    """Yields `id` and `text`, with the title, of each line of `corpus.jsonl` or `queries.jsonl`.

    Args:
      path: the file.
    """
    for _, name, content in beir_texts(path):
        yield {"id": name, "text": content}


@TEXT_ROW_FORMATS.register("trec")
def trec_rows(path: str) -> Iterator[Row]:
    """Yields `id` and `text` of each line of `documents.tsv` or `queries.tsv`.

    Args:
      path: the file.
    """
    for _, name, content in trec_texts(path):
        yield {"id": name, "text": content}


def beir_texts(path: str) -> Iterator[tuple[str, str, str]]:
    """Yields the place, id and text of each line of JSON; the title is part of the text.

    Args:
      path: the file.

    Raises:
      DataError: a line has no string `_id` or `text`.
    """
    for line, row in enumerate(read_file(Reading(path, TaskConfig(), strict=True)), start=1):
        where = f"{path}, line {line}"
        try:
            parts = [text(row, key) for key in ("title", "text") if row.get(key) or key == "text"]
            yield where, text(row, "_id"), " ".join(filter(None, parts))
        except WrongRowError as error:
            raise DataError(f"{where}: {error}") from None


def trec_texts(path: str) -> Iterator[tuple[str, str, str]]:
    """Yields the place, id and text of each line of tab-separated ids and texts.

    Args:
      path: the file.

    Raises:
      DataError: a line has no tab.
    """
    for where, line in numbered_lines(path):
        name, tab, content = line.rstrip("\r\n").partition("\t")
        if not tab:  # A message for each of millions of lines takes as long as reading them.
            raise DataError(f"{where}: expected an id, a tab and a text, got {shown(line)}")
        yield where, name, content


def numbered_lines(path: str) -> Iterator[tuple[str, str]]:
    """Yields the place of each line, for messages, and the line.

    Args:
      path: the file.
    """
    with open_text(path) as file:
        yield from ((f"{path}, line {n}", line) for n, line in enumerate(file, start=1))
