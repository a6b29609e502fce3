"""Checksums of record files, against the manifest of their data set."""

from __future__ import annotations

import os

from official.xlnet.data.file_names import MANIFEST_FILE
from official.xlnet.data.schema import SplitManifest
from official.xlnet.files.checksums import check_sha256

OTHER_FILE = "the file is damaged, or belongs to another data set"


def check_files(path: str, lanes: SplitManifest) -> None:
    """Raises `DataError` if a record file of a split is missing or damaged, by its checksum.

    Args:
      path: directory of the data set.
      lanes: manifest entry of the split.
    """
    for name, sha256 in lanes.files.items():
        check_sha256(os.path.join(path, name), sha256, f"as in {MANIFEST_FILE}", OTHER_FILE)
