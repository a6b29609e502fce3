"""Where a file is not in UTF-8, and how to convert it; imported for messages."""

from __future__ import annotations

import codecs

from official.xlnet.files.compression import open_stream


def conversion(encoding: str, path: str) -> str:
    """Returns the advice to convert a file, with the command.

    Args:
      encoding: the encoding that the file has, as `iconv` calls it.
      path: path of the file.
    """
    return f"convert it with: iconv -f {encoding} -t UTF-8 {path} > NEW"


def first_fault(path: str) -> tuple[int, str]:
    """Returns the line number of the first byte that is not UTF-8, and a description of it."""
    line_number = 1
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_stream(path) as (stream, _):
        for line_number, line in enumerate(stream, 1):
            try:
                decoder.decode(line)
            except UnicodeDecodeError as error:
                byte = error.object[error.start]
                return line_number, f"the byte 0x{byte:02x} ({error.reason})"
    return line_number, "a file that ends within a character"
