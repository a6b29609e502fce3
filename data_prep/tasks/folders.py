"""Reader of folders with one file per text, such as IMDB: `DIR/<class>/<name>.txt`."""

from __future__ import annotations

import os
from collections.abc import Iterator

from official.xlnet.data.examples import TextExample
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError
from official.xlnet.files.json_files import mended
from official.xlnet.files.text import open_text

_NO_CLASS = ("unsup",)  # Unlabelled folders, which are skipped.


@register_reader("classification", folder=True)
def read_folder(reading: Reading) -> Iterator[TextExample]:
    """Reads the files of all class folders, sorted by name.

    Args:
      reading: the folder and reading options.

    Yields:
      One example per file.

    Raises:
      DataError: there is no class folder, or a file is invalid in strict mode.
    """
    found = [
        entry.name
        for entry in os.scandir(reading.path)
        if entry.is_dir() and entry.name not in _NO_CLASS
    ]
    if not found:
        raise DataError(f"{reading.path}: expected one folder per class, got none")
    for label in sorted(found):
        folder = os.path.join(reading.path, label)
        for name in sorted(os.listdir(folder)):
            if not name.lower().endswith(".txt"):
                reading.counts["other_files"] += 1
                continue
            path = os.path.join(folder, name)
            try:
                with open_text(path) as file:
                    text = file.read().replace("<br />", " ")
            except DataError as error:
                reading.reject("bad_utf8", str(error))
                continue
            name = f"{label}/{os.path.splitext(name)[0]}"
            yield TextExample(mended(name), (text,), mended(label))
