"""FASTA: sequences of letters, such as proteins and DNA, as the text of a corpus.

    >sp|P01308 insulin          header
    MALWMRLLPL LALLALWGPD       lines of the sequence, here in blocks of ten letters
    FVNQHLCGSHLVEALYLVCGERGF

Headers are not text. Comments are lines that begin with `;`, before the first header also `#` and
`!`, as in Biopython's `fasta-pearson` and `fasta-blast`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from data_prep.corpus.formats import TextFormat, TextReading, register_format, unix
from official.xlnet.configs.file_patterns import register_patterns
from official.xlnet.configs.registry import TEXT_FILES
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.schema import shown

MARK = b">"
ENDINGS = (".fasta", ".fa", ".faa", ".fna")
FASTQ_MARK = b"@"
FASTQ_ENDINGS = (".fastq", ".fq")
NO_HEADER = "a header, which begins with >, before the letters of FASTA"

_COMMENT = ";"
_COMMENTS_BEFORE = (_COMMENT, "#", "!")
_BLOCKS_OF_TEN = re.compile(rb"(\S{10} +)*\S{1,10}")
# The line before the qualities has no text but that of the header.
_FASTQ_RECORD = re.compile(
    rb"@([^\r\n]*)[\r\n]+(?:[A-Za-z*.-]+[\r\n]+)+\+(?:\1)?[ \t]*(?:[\r\n]|$)"
)


def fasta_records(
    lines: Iterable[str], *, is_start: bool = True
) -> Iterator[tuple[int, str | None, str]]:
    """Yields line number, header and sequence of each record of FASTA, as Biopython reads them.

    White space within a sequence is removed, and a record may have no sequence. Letters before the
    first header are a record whose header is None.

    Args:
      lines: the lines.
      is_start: whether these are the first lines of a file, which may be comments.

    Example:
      >>> list(fasta_records(["; a comment", ">a kinase", "MK LV", "TA ", ">b"]))
      [(2, 'a kinase', 'MKLVTA'), (5, 'b', '')]
    """
    start, header, parts = 1, None, list[str]()
    for line_number, line in enumerate(lines, start=1):
        if line.startswith(">"):
            if header is not None or parts:
                yield start, header, "".join(parts)
            start, header, parts = line_number, line[1:].strip(), []
            continue
        is_before = is_start and header is None and not parts
        if line.startswith(_COMMENTS_BEFORE if is_before else _COMMENT):
            continue
        if letters := "".join(line.split()):
            if is_before:
                start = line_number
            parts.append(letters)
    if header is not None or parts:
        yield start, header, "".join(parts)


def has_sequences(head: bytes) -> bool:
    """Whether the lines after headers have no spaces, as quotes of mail and Markdown have.

    Spaces may divide them into blocks of ten letters.
    """
    lines = [line.strip() for line in head.splitlines() if not line.startswith(b">")]
    lines = [line for line in lines if line]
    if any(b" " in line for line in lines):
        return all(map(_BLOCKS_OF_TEN.fullmatch, lines))
    return bool(lines)


def is_fastq(head: bytes) -> bool:
    """Whether the first bytes are of a record of FASTQ, which has a quality for each letter."""
    return _FASTQ_RECORD.match(head) is not None


def check_is_not_fastq(head: bytes, path: str) -> None:
    """Raises `DataError` if a file begins with a record of FASTQ."""
    if is_fastq(head):
        raise DataError(
            f"{path}: expected FASTA, got FASTQ, whose qualities are not text: convert it, for "
            "example with Biopython's SeqIO.convert(PATH, 'fastq', 'reads.fasta', 'fasta')"
        )


def _check_start(start: bytes, path: str) -> None:
    check_is_not_fastq(start, path)
    for line in start.decode(errors="replace").splitlines():
        if line.strip() and not line.startswith(_COMMENTS_BEFORE):
            require_data(line.startswith(">"), path, NO_HEADER, shown(line[:40]))
            return


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
    is_start = not reading.shard.start and not reading.record
    for line_number, header, sequence in fasta_records(lines, is_start=is_start):
        if header is None and is_start:
            reading.lose("malformed_records", reading.line + line_number, sequence, NO_HEADER)
        elif sequence:
            yield sequence


# Files of FASTQ are recognized, and refused by the check above.
_FASTQ = TextFormat("fasta", fasta, mark=FASTQ_MARK, is_marked=is_fastq)
_FASTQ.__module__ = __name__
register_patterns(TEXT_FILES, FASTQ_ENDINGS, FASTQ_MARK, _FASTQ)
