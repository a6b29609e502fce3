"""A local directory and its remote copy, which is updated while a command writes.

In each pass, logs are uploaded first, then other files, then the records that describe them. Files
are removed afterwards, records first. So a kill leaves the bucket in a state in which a slightly
earlier kill would have left the disk: a checkpoint's record or a manifest, which is written last,
arrives last.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading

from absl import logging

from official.xlnet.errors import DataError
from official.xlnet.files import file_system
from official.xlnet.files.locks import require_in_place
from official.xlnet.files.urls import file_system_of
from official.xlnet.projects.buckets import transfers

PASS_SECONDS = 10.0  # Between two passes; a kill loses what was written since the last one.

_WARNING_SECONDS = 600.0  # Between two reports of failing uploads.
# Locks and unfinished files of the writers of this package and of TensorFlow.
_UNFINISHED = re.compile(r"(^|/)\.lock(\.|$)|\.tmp(/|$)|_temp/|(^|/)\.incomplete-")
# Files that a run appends to. In the bucket they are always newer than the checkpoints of their
# steps. One that has grown alone is sent again when it is larger by this factor.
_LOG = re.compile(r"\.jsonl$|events\.out\.")
_LOG_GROWTH = 1.1
_RECORDS = (".json", "/checkpoint")  # Written after the files that they describe.
_SAVED_MODEL = "/saved_model.pb"  # TF Serving loads a version once it has this file.


class NotUploadedError(DataError):
    """Raised when the final upload of an output fails; the output is kept on the local disk.

    Its message names the local path, for which no URL is shown.
    """

    names_local_paths = True


def upload_failed(url: str, error: Exception, path: str) -> NotUploadedError:
    """Returns the error of a failed upload, which names the local path of the output."""
    return NotUploadedError(f"{url} could not be written: {error}; it is kept in {path}")


class Mirror:
    """Context manager that updates a remote directory from a local one, which is made.

    Args:
      url: the remote directory.
      path: the local directory.
      with_content: whether existing remote files are downloaded first. Otherwise empty files stand
        for them.

    Raises:
      NotUploadedError: at the end, if the last upload fails; as the cause, if the block failed too.
    """

    def __init__(self, url: str, path: str, with_content: bool):
        self._url = url.rstrip("/")
        self._path = path
        self._with_content = with_content
        self._uploads_at_end = file_system_of(url).uploads_at_end
        self._uploaded: dict[str, tuple[int, int]] = {}  # {name: (time, size) of the local file}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Mirror:
        os.makedirs(self._path, exist_ok=True)
        if self._uploads_at_end or file_system.is_dir(self._url):
            names = [name for name in transfers.tree(self._url) if is_mirrored(name)]
            transfers.download_all(self._url, self._path, names, self._with_content)
        self._uploaded = self._local_files()
        if not self._uploads_at_end:
            self._thread.start()
        return self

    def __exit__(self, error_type: object, error: BaseException | None, trace: object) -> None:
        self._stop.set()
        if self._uploads_at_end and error is not None:
            return
        if not self._uploads_at_end:
            self._thread.join()
        try:
            self.upload(is_last=True)
        except Exception as failure:
            not_uploaded = upload_failed(self._url, failure, self._path)
            if error is None:
                raise not_uploaded from failure
            logging.warning("%s", not_uploaded)
            raise error from not_uploaded

    def upload(self, is_last: bool = False) -> None:
        """Makes the remote directory equal to the local one.

        Logs are sent whole: with other files that have changed, or alone once they have grown by a
        tenth. So some ten times the size of a log is sent in all.

        Args:
          is_last: whether logs are sent in any case.
        """
        require_in_place(self._url)
        while not self._try_upload(is_last):
            pass

    def _try_upload(self, is_last: bool) -> bool:
        """Uploads and removes files; False if a local file was removed meanwhile."""
        local_files = self._local_files()
        names = self._names_to_send(local_files, is_last)
        if self._uploads_at_end:
            transfers.upload_all(self._path, names, self._url)
            return True
        for name in names:
            path = os.path.join(self._path, name)
            try:
                transfers.upload(path, f"{self._url}/{name}")
            except FileNotFoundError:
                if os.path.exists(path):
                    raise  # The bucket does not exist.
                return False  # The local file was removed; files that follow may depend on it.
            self._uploaded[name] = local_files[name]
        self._remove_remote(self._uploaded.keys() - local_files.keys())
        return True

    def _names_to_send(self, local_files: dict[str, tuple[int, int]], is_last: bool) -> list[str]:
        """Returns the files that have changed since their upload, in the order of this upload."""
        changed = [name for name, state in local_files.items() if self._uploaded.get(name) != state]
        if not is_last and all(_LOG.search(name) for name in changed):
            changed = [name for name in changed if self._has_grown(name, local_files[name])]
        return sorted(changed, key=lambda name: (_rank(name), local_files[name][0]))

    def _has_grown(self, name: str, state: tuple[int, int]) -> bool:
        """Whether a log has grown enough to be sent alone."""
        _, size = state
        _, uploaded_size = self._uploaded.get(name, (0, 0))
        return size > _LOG_GROWTH * uploaded_size

    def _remove_remote(self, names: set[str]) -> None:
        for name in sorted(names, key=_rank, reverse=True):
            with contextlib.suppress(FileNotFoundError):  # An attempt that seemed to fail did it.
                transfers.remove(f"{self._url}/{name}")
            del self._uploaded[name]

    def _follow(self) -> None:
        """Uploads in regular passes; a fault is logged, and the next pass tries again."""
        while not self._stop.wait(PASS_SECONDS):
            try:
                self.upload()
            except Exception as error:
                logging.log_every_n_seconds(
                    logging.WARNING,
                    "%s: %s; the command goes on, trying again",
                    _WARNING_SECONDS,
                    self._url,
                    error,
                )

    def _local_files(self) -> dict[str, tuple[int, int]]:
        """Returns {path in the directory: (time, size)} of the files that are mirrored."""
        local_files = {}
        for folder, _, names in os.walk(self._path):
            for name in names:
                path = os.path.join(folder, name)
                relative = os.path.relpath(path, self._path)
                if not is_mirrored(relative):
                    continue
                with contextlib.suppress(FileNotFoundError):  # Removed since it was listed.
                    status = os.stat(path)
                    local_files[relative] = (status.st_mtime_ns, status.st_size)
        return local_files


def is_mirrored(name: str) -> bool:
    """Whether a file is mirrored: not a lock, an unfinished file or outside the directory.

    Args:
      name: path of the file in the directory.
    """
    if _UNFINISHED.search(name):
        return False
    parts = name.split("/")
    return "" not in parts and ".." not in parts


def _rank(name: str) -> int:
    """Rank of a file in an upload: 0 for logs, 1 for other files, 2 for records, 3 for the model.

    Files of one rank are ordered by their times, which are wrong where the clock has jumped.
    """
    if f"/{name}".endswith(_SAVED_MODEL):
        return 3
    if f"/{name}".endswith(_RECORDS):
        return 2
    return 0 if _LOG.search(name) else 1
