"""Articles of Wikipedia, as WikiExtractor writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from data_prep.corpus.formats import TextReading, register_format, unix


@register_format("wiki", mark=b"<doc id=", before=re.compile(rb"\n(?=<doc )"))
def wiki_extractor(source: str, reading: TextReading) -> Iterator[str]:
    """The text between `<doc …>` and `</doc>`, as WikiExtractor writes it."""
    documents: list[list[str]] = []
    for line in unix(reading.without_marks(source)).split("\n"):
        bare = line.strip()
        if bare.startswith("<doc ") or (bare and not documents):
            documents.append([])
        if documents and bare != "</doc>" and not bare.startswith("<doc "):
            documents[-1].append(line)
    yield from map("\n".join, documents)
