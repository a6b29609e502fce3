"""Folders of one file for each text, as IMDB's: `DIR/<class>/<name>.txt`."""

from __future__ import annotations

import os
from collections.abc import Iterator

from official.xlnet.data.examples import TextExample
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError

_NO_CLASS = ("unsup",)


@register_reader("classification", folder=True)
def read_folder(reading: Reading) -> Iterator[TextExample]:
    """Yields the files of every class folder, in the order of their names."""
    found = [
        entry.name
        for entry in os.scandir(reading.path)
        if entry.is_dir() and entry.name not in _NO_CLASS
    ]
    if not found:
        raise DataError(f"{reading.path}: expected a folder for each class, got none")
    for label in sorted(found):
        folder = os.path.join(reading.path, label)
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".txt"):
                reading.counts["other_files"] += 1
                continue
            path = os.path.join(folder, name)
            try:
                with open(path, encoding="utf-8") as file:
                    text = file.read().replace("<br />", " ")
            except UnicodeDecodeError as error:
                reading.reject("bad_utf8", f"{path}: expected UTF-8: {error}")
                continue
            yield TextExample(f"{label}/{name.removesuffix('.txt')}", (text,), label)
