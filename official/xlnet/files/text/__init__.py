"""Opening text files for reading: encoding, byte order mark, compression, line ends."""

from __future__ import annotations

import codecs
import contextlib
import io
import re
from collections.abc import Iterator
from typing import TextIO

from official.xlnet.errors import DataError, require_data
from official.xlnet.files.compression import open_stream

BYTE_ORDER_MARK = codecs.BOM_UTF8
_HEAD_BYTES = 1024
_MOST_NULS = 0.2  # Share of NUL bytes above which it is not UTF-8: in UTF-16, every second byte.
# {pattern of the first bytes of a file: its format, and how to convert it}
_OTHER_FORMATS = {
    rb"PK\x03\x04": "a ZIP archive or an Excel workbook; unpack it, or save it as CSV in UTF-8",
    rb"PAR1": "a Parquet file",
    rb"ARROW1|FEA1|\xff{4}.{3}\0": "an Arrow or Feather file",
    rb"ORC.*\0": "an ORC file; convert it with pandas.read_orc and to_parquet",
    rb"SQLite format 3\0": "an SQLite database; export a table as CSV",
    rb"\x80[\2-\5]": "a pickle of Python, which may execute code; save it in another format",
    rb".{257}ustar": "a tar archive; unpack it with tar -xf",
    rb"7z\xbc\xaf|Rar!\x1a": "an archive; unpack it",
    rb"\x93NUMPY|\x89HDF": "a file of arrays",
    rb"%PDF": "a PDF document; extract its text with: pdftotext",
    rb"\xd0\xcf\x11\xe0": "an old Word or Excel file; save it as text or CSV in UTF-8",
}
# Positions modulo 4 of the NUL bytes of most texts.
_ENCODINGS = {(1, 3): "UTF-16", (0, 2): "UTF-16", (1, 2, 3): "UTF-32", (0, 1, 2): "UTF-32"}


# Control characters except tab and new line; characters that change the direction of text, break
# lines or are invisible. Joiners, which Persian and emoji need, are shown.
_NOT_SHOWN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ud800-\udfff\ufeff\ufff9-\ufffb]"
)


def printable(text: str) -> str:
    r"""Returns a text that is safe to show on a terminal: control characters are escaped.

    Example:
      >>> printable("a\x1b[2Jb")
      'a\\u001b[2Jb'
    """
    return _NOT_SHOWN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def printable_line(text: str) -> str:
    r"""Returns a text as one line of a log, with line ends escaped too; see `printable`.

    Example:
      >>> printable_line("notes\nerror: .txt")
      'notes\u000aerror: .txt'
    """
    return printable(text).replace("\n", r"\u000a")


@contextlib.contextmanager
def open_text(path: str, newline: str | None = None) -> Iterator[TextIO]:
    r"""Context manager that opens a text file for reading.

    The text is UTF-8, with or without a byte order mark; gzip, bz2, xz and zstd are decompressed.

    Args:
      path: path or URL of the file.
      newline: as for Python's `open`: None reads `\r\n` and `\r` as `\n`; "" leaves them.

    Yields:
      The text file.

    Raises:
      DataError: the file is not text in UTF-8, which may show inside the block, or is a damaged
        compressed file; the message names the line and the conversion that helps.
      FileNotFoundError: there is no file.
    """
    with open_stream(path) as (stream, _):
        check_is_text(stream.peek(_HEAD_BYTES)[:_HEAD_BYTES], path)
        with io.TextIOWrapper(stream, "utf-8-sig", newline=newline) as file:
            try:
                yield file
            except UnicodeDecodeError:
                from official.xlnet.files.text.encoding_faults import conversion, first_fault

                line, fault = first_fault(path)
                raise DataError(
                    f"{path}, line {line}: expected UTF-8, got {fault}; if the file is in Latin-1 "
                    f"or Windows-1252, {conversion('WINDOWS-1252', path)}"
                ) from None


def check_is_text(head: bytes, path: str) -> None:
    """Checks that the beginning of a file is not that of another format or encoding.

    Args:
      head: the first bytes of the file.
      path: its path, for the message.

    Raises:
      DataError: the file is in UTF-16 or UTF-32, or of another format, such as an archive; the
        message says how to convert it.
    """
    for mark, name in _OTHER_FORMATS.items():
        require_data(not re.match(mark, head, re.DOTALL), path, "text in UTF-8", name)
    has_utf16_mark = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if has_utf16_mark or head.count(0) > _MOST_NULS * max(len(head), 1):
        from official.xlnet.files.text.encoding_faults import conversion

        null_positions = {position % 4 for position, byte in enumerate(head) if byte == 0}
        encoding = _ENCODINGS.get(tuple(sorted(null_positions)), "UTF-16" if has_utf16_mark else "")
        advice = f"; {conversion(encoding, path)}" if encoding else ""
        raise DataError(f"{path}: expected UTF-8, got {encoding or 'binary data'}{advice}")
