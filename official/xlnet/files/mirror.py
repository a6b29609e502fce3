"""A local directory and its remote copy, which follows it while a command writes.

Logs are uploaded first, then other files, then the records of these; files are removed afterwards,
records first.
So a kill leaves the bucket in a state that a slightly earlier kill would have left on the disk: a
checkpoint's record or a manifest, which is written last, arrives last.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import pathlib
import re
import threading
from collections.abc import Sequence

from absl import logging

from official.xlnet.errors import DataError
from official.xlnet.files import file_system
from official.xlnet.files.locks import require_in_place

PASS_SECONDS = 10.0  # Between two passes; a kill loses what was written since the last one.

_WARNING_SECONDS = 600.0  # Between two reports of uploads that fail.
_TRANSFERS = 8  # Downloads at the same time.
# Locks and unfinished files of the writers of this package and of TensorFlow.
_UNFINISHED = re.compile(r"(^|/)\.lock(\.|$)|\.tmp(/|$)|_temp/|(^|/)\.incomplete-")
# Appended to while a run goes on: always newer than the checkpoint whose steps they lead to.
_LOG, _GROWTH = re.compile(r"\.jsonl$|events\.out\."), 1.1
_RECORDS = (".json", "/checkpoint")  # Written after the files that they describe.
_SERVED = "/saved_model.pb"  # TF Serving takes a version for complete once it has this file.


class NotUploadedError(DataError):
    """Raised when the final upload of an output fails; it is kept on the local disk."""


def upload_failed(url: str, error: Exception, path: str) -> NotUploadedError:
    """The error of an upload that failed, which names the local path of what is left."""
    return NotUploadedError(f"{url} could not be written: {error}; it is kept in {path}")


class Mirror:
    """Context manager that keeps a remote directory as a local one, which is made.

    Args:
      url: the remote directory.
      path: the local directory.
      with_content: whether the files that are there are downloaded first. Otherwise empty files
        stand for them.

    Raises:
      NotUploadedError: at the end, if the last upload fails; the cause of another error.
    """

    def __init__(self, url: str, path: str, with_content: bool):
        self._url, self._path, self._with_content = url.rstrip("/"), path, with_content
        self._uploaded: dict[str, tuple[int, int]] = {}  # {name: (time, size) of the local file}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Mirror:
        os.makedirs(self._path, exist_ok=True)
        if file_system.is_dir(self._url):
            names = [name for name in file_system.tree(self._url) if is_kept(name)]
            download_all(self._url, self._path, names, self._with_content)
        self._uploaded = self._local_files()
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._stop.set()
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
        """Makes the remote directory as the local one is now.

        Logs that grow are sent whole: with the other files that have changed, or alone, once they
        have grown by a tenth. So all that is sent of one is some ten times its size.

        Args:
          is_last: whether to send them in any case.
        """
        require_in_place(self._url)
        while not self._try_upload(is_last):
            pass

    def _try_upload(self, is_last: bool) -> bool:
        """The same; False if the local directory changed too much in between."""
        files = self._local_files()
        changed = [name for name, state in files.items() if self._uploaded.get(name) != state]
        if not is_last and all(map(_LOG.search, changed)):
            changed = [
                name
                for name in changed
                if files[name][1] > _GROWTH * self._uploaded.get(name, (0, 0))[1]
            ]
        for name in sorted(changed, key=lambda name: (_rank(name), files[name][0])):
            try:
                file_system.upload(os.path.join(self._path, name), f"{self._url}/{name}")
            except FileNotFoundError:
                if os.path.exists(os.path.join(self._path, name)):
                    raise  # No such bucket.
                return False  # Removed since; later files may depend on it.
            self._uploaded[name] = files[name]
        for name in sorted(self._uploaded.keys() - files.keys(), key=_rank, reverse=True):
            with contextlib.suppress(FileNotFoundError):  # By an attempt that seemed to fail.
                file_system.remove(f"{self._url}/{name}")
            del self._uploaded[name]
        return True

    def _follow(self) -> None:
        """Uploads every now and then; a fault is reported and tried again, the command goes on."""
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
        found = {}
        for folder, _, names in os.walk(self._path):
            for full in (os.path.join(folder, name) for name in names):
                relative = os.path.relpath(full, self._path)
                if is_kept(relative):
                    with contextlib.suppress(FileNotFoundError):  # Removed while we look.
                        facts = os.stat(full)
                        found[relative] = (facts.st_mtime_ns, facts.st_size)
        return found


def is_kept(name: str) -> bool:
    """Whether a file is mirrored, by its path in the directory: no lock, unfinished or odd file."""
    return not (_UNFINISHED.search(name) or {"", ".."} & {*name.split("/")})


def download_all(url: str, path: str, names: Sequence[str], with_content: bool = True) -> None:
    """Copies files of a remote directory to a local one, which is made.

    Args:
      url: the remote directory.
      path: the local directory.
      names: paths of the files in it.
      with_content: whether they are downloaded; otherwise empty files stand for them.
    """
    os.makedirs(path, exist_ok=True)

    def fetch(name: str) -> None:
        local = pathlib.Path(path, name)
        local.parent.mkdir(parents=True, exist_ok=True)
        local.touch()
        if with_content:
            file_system.download(f"{url.rstrip('/')}/{name}", str(local))

    with concurrent.futures.ThreadPoolExecutor(_TRANSFERS) as pool:
        list(pool.map(fetch, names))


def _rank(name: str) -> int:
    """Place of a file in an upload: clocks jump, so that times order only files of one rank."""
    is_log, path = _LOG.search(name) is not None, f"/{name}"
    return path.endswith(_SERVED) * 3 or path.endswith(_RECORDS) * 2 or not is_log
