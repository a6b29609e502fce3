"""Reader of token classification data: CoNLL format, tables, and plain sentences to predict.

In CoNLL format every line is a word with its columns, separated by tabs or else by spaces, and its
tag in the last one; sentences are separated by blank lines. A table (frame, JSON lines, Parquet)
has a sentence in each row: a list `words` or `tokens`, and a list `tags`, `ner_tags` or
`task.label_column`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from data_prep.tasks.rows import (
    Row,
    WrongRowError,
    class_name,
    group_of,
    renamed,
    texts,
    usable,
)
from data_prep.tasks.table import is_table, read_rows
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.compression import ending
from official.xlnet.files.schema import shown
from official.xlnet.files.text import open_text
from official.xlnet.tasks.token_classification import TaggedExample

_DOCUMENT = "-DOCSTART-"  # First field of a document separator.
_TAG = re.compile(r"O|[BIESLU]-\S+")  # Of the schemes BIO, BIOES and BILOU.
_FEW_LINES = 2  # So many sentences may have the same number of words by chance.


@register_reader("token_classification")
def read_conll(reading: Reading) -> Iterator[TaggedExample]:
    """Reads sentences.

    Without labels, the first column is read, or a file of plain sentences, one on each line, whose
    words are separated by spaces.

    Args:
      reading: the file and reading options.

    Yields:
      One example per sentence.

    Raises:
      DataError: the file is not UTF-8, or is JSON or CSV, a line has another number of columns than
        the first or no tag, or it cannot be told whether a file to predict has columns.
    """
    if is_table(reading):
        yield from usable(
            reading, read_rows(reading), lambda row, number: _tagged(reading, row, number)
        )
        return
    with open_text(reading.path) as file:
        text = file.read().split("\n")
    require_data(
        not text[0].lstrip().startswith(('{"', "[{", '["')),
        reading.path,
        "words with their columns, one on each line",
        "JSON",
    )
    lines = [_fields(line) for line in text]
    if not reading.with_labels and _has_sentences(reading, text, lines):
        reading.say("every line is read as a sentence of words that are separated by spaces")
        lines = [fields for line in text for fields in [*([word] for word in line.split()), []]]
    if any(len(fields) > 1 for fields in lines):  # Else a space of another kind is a word.
        lines = [fields if "".join(fields).strip() else [] for fields in lines]
    groups = itertools.groupby(
        enumerate(lines, start=1), lambda line: bool(line[1]) and line[1][0] != _DOCUMENT
    )
    sentences = (list(group) for is_sentence, group in groups if is_sentence)
    width = 0
    for number, sentence in enumerate(sentences):
        for line_number, fields in sentence:
            width = width or len(fields)
            if (
                len(fields) != width
                or (reading.with_labels and width < 2)
                or "" in (fields[0], fields[-1])
            ):
                expected = "a word and its tag" if width < 2 else f"{width} columns, as above"
                raise DataError(
                    f"{reading.path}, line {line_number}: expected {expected}, got "
                    f"{' '.join(fields)!r}"
                )
        words, tags = (tuple(fields[i] for _, fields in sentence) for i in (0, -1))
        yield TaggedExample(str(number), words, tags if reading.with_labels else None)


def _tagged(reading: Reading, row: Row, number: int) -> TaggedExample:
    """The example of a row of a table."""
    row = renamed(reading, row, ["words"], "tags")
    word_column = next((name for name in ("words", "tokens") if name in row), "words")
    known = (reading.settings.label_column, "tags", "ner_tags", "labels")
    tag_column = next((name for name in known if name in row), "tags")
    words = tuple(texts(row, word_column))
    tags = None
    if reading.with_labels:
        if not isinstance(row.get(tag_column), list):
            raise WrongRowError(
                f"expected a list of tags in {tag_column!r}, got {shown(row.get(tag_column))}"
            )
        tags = tuple(class_name(tag, tag_column) for tag in row[tag_column])
        if len(tags) != len(words):
            raise WrongRowError(f"expected a tag for each of {len(words)} words, got {len(tags)}")
    row_id = row.get("id")
    name = str(number if row_id in (None, "") else row_id)
    return TaggedExample(name, words, tags, group_of(row, reading.settings))


def _fields(line: str) -> list[str]:
    """The columns of a line: between tabs, or else between spaces."""
    line = line.strip(" \t\n")
    return line.split("\t") if "\t" in line else [field for field in line.split(" ") if field]


def _has_sentences(reading: Reading, text: list[str], lines: list[list[str]]) -> bool:
    """Whether a file to predict has a sentence on each line, and no columns.

    It has columns if a line has a tab, or every line is one word, or every line ends in a tag of
    the task or of a usual scheme.
    """
    words = [fields for fields in lines if "".join(fields).strip() and fields[0] != _DOCUMENT]
    widths = {len(fields) for fields in words}
    tags = {fields[-1] for fields in words}
    is_tagged = all(tag in reading.settings.labels or _TAG.fullmatch(tag) for tag in tags)
    has_tabs = any("\t" in line.strip() for line in text)
    if not words or has_tabs or widths == {1} or (is_tagged and min(widths) > 1):
        return False
    require_data(
        ending(reading.path) != ".csv",
        reading.path,
        "words with their columns, or sentences, one on each line",
        "a table, as .csv says; write a text file of the column with the words or sentences",
    )
    require_data(
        len(widths) > 1 or len(words) <= _FEW_LINES,
        reading.path,
        "words with their columns, of which the last is a tag, or words alone, or sentences",
        f"{len(words)} lines of {min(widths)} columns without a tag; leave only the words, "
        "one on each line, or separate columns by tabs",
    )
    return True
