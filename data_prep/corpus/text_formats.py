r"""Plain text: documents that are separated by blank lines, or begin with a given first line.

Line ends are `\n`, `\r\n` or `\r`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from data_prep.corpus.formats import NEWLINE, TextReading, register_format, unix

_BLANK_LINE = re.compile(NEWLINE + rb"[ \t\x0b\x0c]*" + NEWLINE)


@register_format(
    "text",
    before=lambda options: options.document_starts()[0] if options.document_start else _BLANK_LINE,
)
def plain_text(source: str, reading: TextReading) -> Iterator[str]:
    """A block separated by blank lines; each line is a paragraph or a sentence."""
    text = unix(reading.without_marks(source))
    if reading.options.document_start:
        _, start = reading.options.document_starts()
        yield from filter(str.strip, start.split(text))
        return
    parts = re.split(r"\n(?:[^\S\n]*\n)+", f"\n{text}\n")
    yield from filter(None, (part.strip("\n") for part in parts))
