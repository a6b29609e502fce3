"""Checkpoint management: saving, checksums, retention, and selection of the one to resume from.

A checkpoint consists of `ckpt-STEP.index` and `ckpt-STEP.data-…`, written by TensorFlow, and a
JSON record `ckpt-STEP.json`, written when the other files are complete:

    {"step": 700, "files": {"ckpt-700.index": SHA-256, …}, "position": …, "heldout_loss": 3.1}

A checkpoint without a record is ignored, so a run that is killed while saving leaves no partial
checkpoint.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

import tensorflow as tf
from absl import logging

from official.xlnet.checkpoints.plain_folder import plain_folder
from official.xlnet.errors import DataError
from official.xlnet.files import file_system
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.checksums import check_sha256, sha256_of
from official.xlnet.files.json_files import read_json, write_json
from official.xlnet.files.schema import conform

_LATEST = re.compile(r'^model_checkpoint_path: "([^"]+)"$', re.MULTILINE)

_RECORD = re.compile(r"ckpt-(\d+)\.json$")
_FILE = re.compile(r"(ckpt-\d+)(_temp|\.index|\.data-.*|\.json\.tmp)$")


class SavedState(NamedTuple):
    """A valid checkpoint.

    Attributes:
      prefix: path prefix of the checkpoint, as expected by TensorFlow.
      record: contents of its JSON record; empty if it was not written by a training run.
    """

    prefix: str
    record: dict[str, Any]


def newest_checkpoint(model_dir: str) -> SavedState | None:
    """Returns the latest valid checkpoint of a model directory.

    Verifies checksums; damaged checkpoints are skipped with a warning. If there are no records (as
    in the output of `xlnet convert`), returns the latest checkpoint without verification.

    Args:
      model_dir: the model directory.

    Returns:
      The checkpoint, or None if there is none.

    Raises:
      DataError: all checkpoints are damaged.
    """
    steps = recorded_steps(model_dir)
    if not steps:
        path = latest_checkpoint(model_dir)
        return None if path is None else SavedState(path, {})
    damages: list[str] = []
    for step in reversed(steps):
        prefix = os.path.join(model_dir, f"ckpt-{step}")
        try:
            saved = SavedState(prefix, _verified_record(prefix))
        except (OSError, DataError) as error:
            damages.append(f"checkpoint {prefix} is damaged: {error}")
            continue
        if damages:
            logging.warning("%s; resuming from %s", "; ".join(damages), prefix)
        return saved
    raise DataError(f"{model_dir}: no valid checkpoint: {'; '.join(damages)}")


def latest_checkpoint(directory: str) -> str | None:
    """Prefix of the checkpoint that the file `checkpoint` of a directory names, None without one.

    `tf.train.latest_checkpoint` takes a `[` in the path for a pattern's, and warns of damage only.

    Raises:
      DataError: the file is damaged.
    """
    path = os.path.join(directory, "checkpoint")
    try:
        named = _LATEST.search(file_system.read_bytes(path).decode(errors="replace"))
    except FileNotFoundError:
        return None
    if named is None:
        raise DataError(f"{path} is damaged: expected the name of a checkpoint")
    prefix = os.path.join(directory, os.path.basename(named[1]))
    return prefix if os.path.isfile(f"{prefix}.index") else None


@contextlib.contextmanager
def reading_checkpoint(path: str) -> Iterator[str]:
    """Context manager that converts errors of reading a checkpoint to `DataError`.

    Args:
      path: path prefix of the checkpoint.

    Yields:
      The prefix as TensorFlow can read it, see `plain_folder`.
    """
    folder, name = os.path.split(path)
    try:
        with plain_folder(folder) as plain:
            yield os.path.join(plain, name)
    except (tf.errors.OpError, AssertionError, ValueError, IndexError, RuntimeError) as error:
        message = str(error).strip().partition("\n")[0]
        raise DataError(f"checkpoint {path} cannot be used: {message}") from error


class CheckpointWriter:
    """Saves checkpoints of a run, keeping the most recent ones and the best.

    The checkpoint itself is written synchronously. Computing checksums, writing the record and
    removing old checkpoints happen in a background thread.

    Args:
      state: the objects to save.
      model_dir: the model directory.
      num_kept: number of most recent checkpoints to keep, besides the one with the lowest
        `heldout_loss`.
      is_chief: whether this is the chief worker. All workers have to call `save`, since values
        that differ between replicas are gathered; see `other_workers`.
    """

    def __init__(self, state: tf.train.Checkpoint, model_dir: str, num_kept: int, is_chief: bool):
        self._state = state
        state.save_counter.assign(0)  # Creates the variable, which `Checkpoint.restore` expects.
        self._model_dir = model_dir
        self._num_kept = num_kept
        self._is_chief = is_chief
        self._pool = concurrent.futures.ThreadPoolExecutor(1, "checkpoint")
        self._pending: concurrent.futures.Future[None] | None = None
        if is_chief:
            os.makedirs(model_dir, exist_ok=True)
            self._remove_unfinished()

    def save(self, step: int, **record: Any) -> None:
        """Saves a checkpoint `ckpt-STEP`.

        Args:
          step: the training step.
          **record: JSON-serializable values for the record, e.g. `heldout_loss=3.1`.
        """
        self.wait()
        if not self._is_chief:
            from official.xlnet.checkpoints.other_workers import take_part_in_saving

            take_part_in_saving(self._state)
            return
        prefix = os.path.join(self._model_dir, f"ckpt-{step}")
        self._state.write(prefix)
        self._pending = self._pool.submit(self._commit, prefix, {"step": step, **record})

    def wait(self) -> None:
        """Blocks until the last checkpoint is complete; re-raises background errors."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def _commit(self, prefix: str, record: dict[str, Any]) -> None:
        files = {os.path.basename(path): sha256_of(path) for path in _files(prefix)}
        write_json(f"{prefix}.json", {**record, "files": files}, indent=None)
        steps = recorded_steps(self._model_dir)
        losses = _heldout_losses(self._model_dir)
        best = sorted(losses, key=losses.__getitem__)[:1]
        kept = sorted({*steps[-self._num_kept :], *best})
        # The state file read by `tf.train.latest_checkpoint`.
        names = [f'"ckpt-{step}"\n' for step in kept]
        state = "".join(f"all_model_checkpoint_paths: {name}" for name in names)
        state = f"model_checkpoint_path: {names[-1]}{state}"
        write_bytes(os.path.join(self._model_dir, "checkpoint"), state.encode())
        for step in set(steps) - set(kept):
            old = os.path.join(self._model_dir, f"ckpt-{step}")
            for path in (f"{old}.json", *_files(old)):
                os.remove(path)

    def _remove_unfinished(self) -> None:
        """Removes the partial files of a run that was killed while saving."""
        recorded = {f"ckpt-{step}" for step in recorded_steps(self._model_dir)}
        if not recorded and latest_checkpoint(self._model_dir):
            return  # No training run wrote it, so there are no records.
        for name in os.listdir(self._model_dir):
            match = _FILE.match(name)
            path = os.path.join(self._model_dir, name)
            if match and match[1] not in recorded:
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def best_heldout_loss(model_dir: str) -> float:
    """Returns the lowest `heldout_loss` of a directory's checkpoints, or infinity."""
    return min(_heldout_losses(model_dir).values(), default=float("inf"))


def _heldout_losses(model_dir: str) -> dict[int, float]:
    """{step: held-out loss} of the evaluated checkpoints."""
    losses = {}
    for step in recorded_steps(model_dir):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            record = read_json(os.path.join(model_dir, f"ckpt-{step}.json"), dict[str, Any])
            losses[step] = float(record["heldout_loss"])
    return losses


def recorded_steps(model_dir: str) -> list[int]:
    """Steps of the complete checkpoints of a run in a directory or at a URL; empty without one."""
    try:
        names = file_system.names(model_dir)
    except FileNotFoundError:
        return []
    return sorted(int(match[1]) for match in map(_RECORD.match, names) if match)


def _verified_record(prefix: str) -> dict[str, Any]:
    """The record of a checkpoint, whose files have their checksums.

    Raises:
      DataError: a file is missing or damaged.
    """
    record = read_json(f"{prefix}.json", dict[str, Any])
    files = conform(record.get("files"), dict[str, str], f"{prefix}.json: files")
    for name, expected in files.items():
        path = os.path.join(os.path.dirname(prefix), name)
        check_sha256(path, expected, f"as in {prefix}.json")
    return record


def _files(prefix: str) -> list[str]:
    folder, start = os.path.split(prefix)
    names = [name for name in os.listdir(folder or ".") if name.startswith(f"{start}.")]
    names = [name for name in names if name.removeprefix(start).startswith((".index", ".data-"))]
    return [os.path.join(folder, name) for name in sorted(names)]
