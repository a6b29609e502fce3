"""Cuts in lines and documents that are too long to be read as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from data_prep.corpus.formats import Counts

_SPACE = re.compile(rb"[ \t\r\n]")


def cut_lines(document: Sequence[str], max_chars: int, counts: Counts) -> Iterator[str]:
    """Yields the lines of a document, cut at spaces if they are too long, and counts the cuts."""
    for line in document:
        start = 0
        while len(line) - start > max_chars:
            space = line.rfind(" ", start + 1, start + max_chars)
            end = space if space > 0 else start + max_chars
            counts["cut_lines"] += 1
            yield line[start:end]
            start = next((n for n in range(end, len(line)) if not line[n].isspace()), len(line))
        if start < len(line):
            yield line[start:]


def first_break(data: bytes) -> int:
    """Offset after the first line end, else the first space, else of the first whole character."""
    line_ends = [at for at in (data.find(b"\n"), data.find(b"\r")) if at >= 0]
    if line_ends:
        at = min(line_ends)
        return at + (2 if data[at : at + 2] == b"\r\n" else 1)
    if match := _SPACE.search(data):
        return match.end()
    return next((i for i, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)
