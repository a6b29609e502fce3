"""Replacement of generated tables in hand-written Markdown documents."""

from __future__ import annotations

import os
import re


def fill_table(document: str, name: str, table: str) -> None:
    """Replaces the text between `<!-- table: NAME -->` and `<!-- end -->`.

    Args:
      document: path of the Markdown file.
      name: name of the table.
      table: Markdown text.

    Raises:
      ValueError: the document does not have exactly one such table.
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
