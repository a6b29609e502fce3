"""Documents whose text is written by hand and whose tables are written by commands."""

from __future__ import annotations

import os
import re


def fill_table(document: str, name: str, table: str) -> None:
    """Puts a table between `<!-- table: NAME -->` and `<!-- end -->`.

    Raises:
      ValueError: the document has no such place, or more than one.
    """
    with open(document, encoding="utf-8") as file:
        text = file.read()
    pattern = rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end -->)"
    text, replaced = re.subn(pattern, lambda m: f"{m[1]}{table}\n{m[2]}", text, flags=re.S)
    if replaced != 1:
        raise ValueError(f"{document}: expected one place for table {name!r}, got {replaced}")
    with open(document + ".tmp", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(document + ".tmp", document)
