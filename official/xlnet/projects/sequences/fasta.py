"""FASTA: sequences of letters, such as proteins and DNA, as the text of a corpus.

    >sp|P01308 insulin          header
    MALWMRLLPLLALLALWGPDPAAA    lines of the sequence
    FVNQHLCGSHLVEALYLVCGERGF

Headers are not text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from data_prep.corpus.formats import TextReading, register_format, unix
from official.xlnet.errors import require_data
from official.xlnet.files.schema import shown

MARK = b">"
ENDINGS = (".fasta", ".fa", ".faa", ".fna")


def fasta_records(lines: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """Yields line number, header and sequence of each record of FASTA.

    A sequence has spaces if there are some within its lines. Lines before the first header are a
    record without one, and a record may have no sequence.

    Example:
      >>> list(fasta_records([">a kinase", "MK", "TA ", ">b"]))
      [(1, 'a kinase', 'MKTA'), (4, 'b', '')]
    """
    start, header, parts = 1, "", list[str]()
    for line_number, line in enumerate(itertools.chain(lines, [">"]), start=1):
        if not line.startswith(">"):
            parts.append(line.strip())
            continue
        if line_number > 1:
            yield start, header, "".join(parts)
        start, header, parts = line_number, line[1:].strip(), []


def has_sequences(head: bytes) -> bool:
    """Whether the lines after headers have no spaces, as quotes of mail and Markdown have."""
    lines = [line.strip() for line in head.splitlines() if not line.startswith(b">")]
    return any(lines) and not any(b" " in line for line in lines)


def _check_start(start: bytes, path: str) -> None:
    require_data(
        start.startswith(MARK),
        path,
        "a header, which begins with >, in the first line of FASTA",
        shown(start[:40].decode(errors="replace")),
    )


@register_format(
    "fasta",
    endings=ENDINGS,
    mark=MARK,
    is_marked=has_sequences,
    check_start=_check_start,
    before=re.compile(rb"[\r\n](?=>)"),
)
def fasta(source: str, reading: TextReading) -> Iterator[str]:
    """A sequence, whose lines are put together; headers (`>`) are not text."""
    lines = unix(reading.without_marks(source)).split("\n")
    for line_number, _, sequence in fasta_records(lines):
        if " " in sequence:
            expected = "letters without spaces after it (--format=text reads the file as text)"
            reading.lose("malformed_records", reading.line + line_number, sequence, expected)
        elif sequence:
            yield sequence
