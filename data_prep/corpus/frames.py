"""Data frames as inputs: Parquet files in memory, with URLs such as `frame://HASH.parquet`."""

from __future__ import annotations

import datetime
import hashlib
import io
from typing import Any

from official.xlnet.errors import require_extra
from official.xlnet.files.urls import register_file_system
from official.xlnet.files.urls.file_systems import FileSystem

_SCHEME = "frame"
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

_contents: dict[str, bytes] = {}  # By URL.


def frame_url(frame: Any) -> str:
    """Returns the URL of a data frame as a Parquet file in memory.

    Its name depends on the content only, so that the same frame resumes in another process.

    Args:
      frame: a data frame of pandas, or a data set of HF `datasets`.

    Raises:
      ConfigError: pyarrow is not installed.
    """
    require_extra("pyarrow", "parquet", "a data frame as input")
    pandas_frame = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
    content = pandas_frame.to_parquet(None)
    url = f"{_SCHEME}://{hashlib.sha256(content).hexdigest()}.parquet"
    _contents[url] = content
    return url


@register_file_system(_SCHEME)
class FrameFiles(FileSystem):
    """The Parquet files of this process; see `FileSystem`."""

    def file_type(self, url: str) -> str | None:
        """Returns `file`, or None if there is no such frame."""
        return "file" if url in _contents else None

    def open(self, url: str, buffering: int = -1) -> Any:
        """Opens a file for reading in binary mode."""
        return io.BytesIO(_content(url))

    def version(self, url: str) -> str:
        """Returns a version of a file, which depends on its content only.

        Data sets record it. It is what version 1.0.0 recorded.
        """
        info = {
            "name": url.removeprefix(f"{_SCHEME}:/"),
            "size": len(_content(url)),
            "type": "file",
            "created": _EPOCH,
        }
        return hashlib.sha256(str(info).encode()).hexdigest()

    def names(self, directory: str) -> list[str]:
        """Raises `FileNotFoundError`: there are no directories."""
        raise FileNotFoundError(directory)

    def tree(self, directory: str) -> dict[str, int]:
        """Raises `FileNotFoundError`: there are no directories."""
        raise FileNotFoundError(directory)

    def glob(self, pattern: str) -> list[str]:
        """Returns the file of this name."""
        return [pattern] if pattern in _contents else []

    def is_shared(self, url: str) -> bool:
        """Returns False: other processes do not have the files."""
        return False


def _content(url: str) -> bytes:
    if url not in _contents:
        raise FileNotFoundError(url)
    return _contents[url]
