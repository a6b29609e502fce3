"""Reader of token classification data in CoNLL format.

One word per line with its tag in the last column; sentences are separated by blank lines.
"""

from __future__ import annotations

from collections.abc import Iterator

from official.xlnet.data.examples import TaggedExample
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError
from official.xlnet.files.text import open_text

_DOCUMENT = "-DOCSTART-"  # First field of a document separator.


@register_reader("token_classification")
def read_conll(reading: Reading) -> Iterator[TaggedExample]:
    """Reads sentences; without labels, only the first column is read.

    Args:
      reading: the file and reading options.

    Yields:
      One example per sentence.

    Raises:
      DataError: the file is not UTF-8, or a line has no tag.
    """
    number = 0
    words: list[str] = []
    tags: list[str] = []
    with open_text(reading.path) as file:
        for line_number, line in enumerate([*file, "\n"], start=1):
            fields = line.split()
            if not fields or fields[0] == _DOCUMENT:
                if words:
                    yield TaggedExample(
                        str(number), tuple(words), tuple(tags) if reading.with_labels else None
                    )
                    number, words, tags = number + 1, [], []
                continue
            if reading.with_labels and len(fields) < 2:
                raise DataError(
                    f"{reading.path}, line {line_number}: expected a word and its tag, got "
                    f"{line.strip()!r}"
                )
            words.append(fields[0])
            tags.append(fields[-1])
