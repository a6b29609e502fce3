"""Reader of words with labels: CoNLL format, tables, plain sentences to predict.

In CoNLL format every line is a word with its columns, separated by tabs or else by spaces, and its
tag in the last one; sentences are separated by blank lines. `task.text_columns` and
`task.label_column` choose other columns: by number, from 1, or by the names of CoNLL-U. A table
(frame, JSON lines, Parquet) has a sentence in each row: a list `words` or `tokens`, and a list
`tags`, `ner_tags`, `labels` or `task.label_column`.

Where something else than words has the labels (`task.label_unit`), its rows have other values in
place of the list of words; TSV and CSV may have such rows, too.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any

from data_prep.tasks.columns import only, with_examples
from data_prep.tasks.row_formats import row_format_of
from data_prep.tasks.rows import (
    Row,
    WrongRowError,
    class_name,
    group_of,
    renamed,
    row_id,
    usable,
)
from data_prep.tasks.rows import number as number_of
from data_prep.tasks.table import is_table, read_rows
from official.xlnet.configs.registry import LABEL_UNITS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.compression import ending
from official.xlnet.files.schema import shown
from official.xlnet.files.text import open_text
from official.xlnet.tasks.settings import LabelConfig
from official.xlnet.tasks.token_classification import TagConfig, TaggedExample
from official.xlnet.tasks.token_classification.label_units import TAG_COLUMNS, LabelUnit

_DOCUMENT = "-DOCSTART-"  # First field of a document separator.
_CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_NO_WORD = re.compile(r"#|\d+[-.]\d+$")  # Comments, ranges and empty nodes in files with numbers.
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
    text: list[str] = []
    if not is_table(reading):
        with open_text(reading.path) as file:
            text = file.read().split("\n")
    if not text or _has_example_in_each_row(reading, text[0]):
        rows = _rows_of_examples(reading, text)
        yield from usable(reading, rows, lambda row, row_number: _tagged(reading, row, row_number))
        return
    require_data(
        not text[0].lstrip().startswith(('{"', "[{", '["')),
        reading.path,
        "words with their columns, one on each line",
        "JSON",
    )
    lines = [_fields(line) for line in text]
    if not reading.with_labels and _has_sentences(reading, text, lines):
        reading.say("every line is read as a sentence of words that are separated by spaces")
        lines = []
        for line in text:
            lines += [[word] for word in line.split()]
            lines.append([])  # The end of the sentence.
    if any(len(fields) > 1 for fields in lines):  # Else a space of another kind is a word.
        lines = [fields if "".join(fields).strip() else [] for fields in lines]
    groups = itertools.groupby(
        enumerate(lines, start=1), lambda line: bool(line[1]) and line[1][0] != _DOCUMENT
    )
    sentences = [list(group) for is_sentence, group in groups if is_sentence]
    words_alone = []
    for sentence in sentences:
        words_alone.append([line for line in sentence if not _NO_WORD.match(line[1][0])])
    is_numbered = any(words_alone) and all(
        len(fields) > 1 and fields[0] == str(n)
        for sentence in words_alone
        for n, (_, fields) in enumerate(sentence, start=1)
    )
    sentences = list(filter(None, words_alone)) if is_numbered else sentences
    width = len(sentences[0][0][1]) if sentences else 0
    for line_number, fields in itertools.chain(*sentences):
        is_too_narrow = reading.with_labels and width < 2
        if len(fields) != width or is_too_narrow or "" in (fields[0], fields[-1]):
            expected = "a word and its tag" if width < 2 else f"{width} columns, as above"
            raise DataError(
                f"{reading.path}, line {line_number}: expected {expected}, got {' '.join(fields)!r}"
            )
    columns = []
    for n in range(width):
        columns.append([[fields[n] for _, fields in sentence] for sentence in sentences])
    word, tag = _chosen(reading, columns, is_numbered) if width > 1 else (0, 0)
    both = zip(columns[word], columns[tag], strict=True) if sentences else ()
    rows = ({"words": words, "tags": tags} for words, tags in both)

    def tagged(row: Row, row_number: int) -> TaggedExample:
        tags = _values(reading, row["tags"], "tags") if reading.with_labels else None
        return TaggedExample(str(row_number - 1), tuple(row["words"]), tags)

    yield from usable(reading, rows, tagged)


def _label_unit(reading: Reading) -> LabelUnit:
    """The label unit that the settings name."""
    return LABEL_UNITS[reading.settings.settings(TagConfig).label_unit]()


def _has_example_in_each_row(reading: Reading, header: str) -> bool:
    """Whether a file has an example in each row, as the settings or the names in its header say."""
    if _label_unit(reading).name != TagConfig.label_unit:
        return True
    if not reading.with_labels or ending(reading.path) not in (".csv", ".tsv"):
        return False
    names = {*re.split('[,;|\t"]', header.strip())}
    units = [LABEL_UNITS[name]() for name in LABEL_UNITS.names()]
    return any(unit.has_rows(names, reading.settings) for unit in units)


def _rows_of_examples(reading: Reading, lines: list[str]) -> Iterator[Row]:
    """The rows of a table; or of lines to predict, each with a text."""
    if lines and not reading.with_labels and row_format_of(reading.path) is None:
        unit = _label_unit(reading)
        return (unit.row_of(line) for line in lines if line)
    return read_rows(reading)


def _chosen(reading: Reading, columns: list[list[list[str]]], is_numbered: bool) -> tuple[int, int]:
    """The columns of words and tags: those that settings name, or the first and last if clear.

    It is not clear if the first one has numbers or tags, or another one has tags of the same types
    as the last one.
    """
    settings = reading.settings
    numbers = tuple(str(n) for n in range(1, len(columns) + 1))
    is_conllu = is_numbered and len(columns) == len(_CONLLU)
    names = _CONLLU if is_conllu else numbers
    places = {name: n for every in (numbers, names) for n, name in enumerate(every)}
    values = dict(zip(names, (list(itertools.chain(*column)) for column in columns), strict=True))
    types_of_tags = {
        name: {tag.partition("-")[2] for tag in tags} - {""}
        for name, tags in values.items()
        if all(map(_TAG.fullmatch, tags))
    }
    word = "form" if is_conllu else "1"
    if settings.text_columns:
        word = settings.text_columns[0]
    has_label = settings.label_column != TaskConfig.label_column
    tag = settings.label_column if has_label else names[-1]
    is_only_tag = True  # Whether no other column could be the tags.
    for name, entity_types in types_of_tags.items():
        if name not in (word, tag) and tag in types_of_tags:
            has_same_types = bool(entity_types & types_of_tags[tag])
            is_only_tag &= bool(types_of_tags[tag]) and not has_same_types
    is_word = is_conllu or not (is_numbered or word in types_of_tags)
    for key, name, is_clear in (
        ("text_columns", word, bool(settings.text_columns) or is_word),
        ("label_column", tag, has_label or (is_only_tag and not is_conllu and tag != word)),
    ):
        if (reading.with_labels or key == "text_columns") and not (is_clear and name in places):
            raise DataError(
                f"{reading.path}: expected task.{key} to be one of the columns "
                f"{with_examples(names, values)}, got {name if is_clear else 'no setting'}"
            )
    return places[word], places.get(tag, 0)


def _tagged(reading: Reading, row: Row, row_number: int) -> TaggedExample:
    """The example of a row of a table."""
    row = renamed(reading, row, ["words"], "tags")
    word_column, tag_column = _columns_of_row(reading, row)
    unit = _unit_of_row(reading, row, word_column, is_first=row_number == 1)
    if row_number == 1:
        tags_from = f", tags from {tag_column}" if reading.with_labels else ""
        reading.say(f"{unit.name}s are read from {word_column}{tags_from}")
    words = unit.units_of(row, word_column)
    tags = None
    if reading.with_labels:
        labels: Any = row.get(tag_column)
        if not unit.takes_labels(labels):
            raise WrongRowError(f"expected a list of tags in {tag_column!r}, got {shown(labels)}")
        if len(labels) != len(words):
            raise WrongRowError(
                f"expected a tag for each of {len(words)} {unit.name}s, got {len(labels)}"
            )
        tags = _values(reading, labels, tag_column)
    return TaggedExample(
        row_id(row, "id", row_number),
        words,
        tags,
        group=group_of(row, reading.settings),
        separator=unit.separator,
    )


def _columns_of_row(reading: Reading, row: Row) -> tuple[str, str]:
    """The columns of words and tags, among those that settings or usual names allow."""
    settings = reading.settings
    word_columns = ["words"]
    if not settings.text_columns:
        units = [LABEL_UNITS[name] for name in LABEL_UNITS.names()]
        word_columns = [column for unit in units for column in unit.columns]
    tag_columns = ["tags"]
    if settings.label_column == TaskConfig.label_column and reading.with_labels:
        tag_columns = [*TAG_COLUMNS]
    words_in_row = [name for name in word_columns if name in row] or word_columns[:1]
    tags_in_row = [name for name in tag_columns if name in row] or tag_columns[:1]
    return (
        only(reading, words_in_row, row, "text_columns"),
        only(reading, tags_in_row, row, "label_column"),
    )


def _unit_of_row(reading: Reading, row: Row, column: str, is_first: bool) -> LabelUnit:
    """The label unit of a row: of the setting, or else of the first row of training data."""
    unit, settings, value = _label_unit(reading), reading.settings, row.get(column)
    if unit.takes(value) or unit.name != TagConfig.label_unit:
        return unit
    others = [name for name in LABEL_UNITS.names() if LABEL_UNITS[name]().takes(value)]
    if not others:
        return unit
    # A model that is trained keeps what it was trained on.
    is_trained = bool(settings.labels or settings.settings(LabelConfig).target_means)
    if is_first and reading.with_labels and not is_trained:
        settings.label_unit = others[0]
        return _label_unit(reading)
    raise WrongRowError(
        f"expected a list of words in {column!r}, got {shown(value)}; to train on its "
        f"{others[0]}s, set task.label_unit={others[0]}"
    )


def _values(reading: Reading, values: Iterable[Any], column: str) -> tuple[str | float, ...]:
    """Numbers; or tags by name, where with `task.label_type=int` integers are their places."""
    if reading.settings.has_number_labels:
        return tuple(number_of({column: value}, column) for value in values)
    tags = [class_name(value, column) for value in values]
    labels, is_numbers = reading.settings.labels, bool(tags) and all(map(str.isdecimal, tags))
    if not (labels and is_numbers) or {*tags} <= {*labels}:
        return tuple(tags)
    require_data(
        reading.settings.label_type == "int" and max(map(int, tags)) < len(labels),
        reading.path,
        f"tags among {', '.join(labels)}",
        f"the numbers {', '.join(tags[:5])}; task.label_type=int reads them as places in it",
    )
    return tuple(labels[int(tag)] for tag in tags)


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
