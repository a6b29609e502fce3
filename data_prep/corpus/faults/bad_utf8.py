"""Text with bytes that are not UTF-8."""

from __future__ import annotations

from data_prep.corpus.formats import TextReading
from official.xlnet.configs.registry import TEXT_FORMATS
from official.xlnet.errors import DataError


def decode_replaced(data: bytes, error: UnicodeDecodeError, reading: TextReading) -> str:
    """Decodes such text as `on_bad_utf8` says, and counts the replaced bytes.

    Args:
      data: the text.
      error: what decoding it has raised.
      reading: the shard that it is from.

    Raises:
      DataError: such text is an error; the message names the file and line.
    """
    if reading.options.on_bad_utf8 == "error":
        from official.xlnet.files.text.encoding_faults import conversion, first_fault

        path, has_lines = reading.shard.path, TEXT_FORMATS[reading.shard.format].before
        where = f"{path}, line {first_fault(path)[0]}" if has_lines else reading.place
        raise DataError(
            f"{where}: expected UTF-8, got the byte 0x{data[error.start]:02x} "
            f"({error.reason}); --on_bad_utf8=replace reads such bytes as U+FFFD; if the file "
            f"is in another encoding, {conversion('WINDOWS-1252', path)}"
        ) from None
    text = data.decode(errors="replace")
    already_present = data.count("\ufffd".encode())
    reading.counts["bad_bytes"] += text.count("\ufffd") - already_present
    return text
