"""Sharding of a corpus: splits input files into parts that are read in parallel.

A file of text is split into byte ranges whose size depends only on the size of the corpus, so
shards do not depend on the number of workers; other formats have parts of their own, or one.
"""

from __future__ import annotations

import collections
import concurrent.futures
import os
import re
from collections.abc import Sequence

from data_prep.corpus.formats import DETECTION_BYTES, TFDS_PREFIX, Shard, detected_format
from data_prep.settings import ReadOptions
from official.xlnet.configs.registry import TEXT_FORMATS
from official.xlnet.errors import DataError, require_data
from official.xlnet.files import file_system
from official.xlnet.files.arguments import DataFrame, weighted
from official.xlnet.files.compression import ending, open_stream
from official.xlnet.files.text import BYTE_ORDER_MARK, check_is_text
from official.xlnet.files.urls.file_entry import FileEntry

_MIN_SHARD_BYTES, _MAX_SHARD_BYTES, _TARGET_NUM_SHARDS = 4 << 20, 64 << 20, 256
_MAX_REQUESTS = 32  # At the same time, for the first bytes of files.
_TABLES = (".csv", ".tsv")
_JSON_OBJECT = re.compile(rb'\{\s*"(?:[^"\\]|\\.)*"\s*:')

Paths = str | os.PathLike | Sequence[str | os.PathLike] | DataFrame


def find_shards(inputs: Sequence[str], options: ReadOptions) -> list[Shard]:
    """Splits a corpus into shards.

    Args:
      inputs: file names or URLs, glob patterns (`**` matches directories recursively) or
        `tfds:NAME:SPLIT`. The files of a pattern are sorted by name. A number at the end, as in
        `notes/*.txt:3`, reads its files as often; a file of two patterns is read for each of them.
      options: reading options; uses `format`.

    Returns:
      The shards, in reading order.

    Raises:
      DataError: a pattern matches no file, or a file or TFDS data set is invalid.
    """
    if not inputs:
        raise DataError("no input: expected file names or glob patterns")
    entries: dict[str, FileEntry | None] = {}  # {path: file}; None for TFDS.
    times: collections.Counter[str] = collections.Counter()
    for pattern in inputs:
        if pattern.startswith(TFDS_PREFIX):
            entries[pattern] = None
            times[pattern] += 1
            continue
        pattern, weight = weighted(pattern)
        for entry in _find_files(pattern):
            entries[entry.path] = entry
            times[entry.path] += weight
    most = shard_bytes(sum(entry.size for entry in entries.values() if entry is not None))
    tasks = [(path, entry, options, most) for path, entry in entries.items()]
    are_remote = any(map(file_system.is_remote, entries))
    shards_of_files = _side_by_side(tasks) if are_remote else [_file_shards(*x) for x in tasks]
    shards: list[Shard] = []
    for turn in range(max(times.values())):  # All files, then again those that count more.
        for path, shards_of_file in zip(entries, shards_of_files, strict=True):
            if times[path] > turn:
                shards += shards_of_file
    return shards


def _find_files(pattern: str) -> list[FileEntry]:
    """Returns the files of a pattern, sorted by name.

    Raises:
      DataError: there are none.
    """
    # A file name may contain special characters of glob patterns.
    matches = file_system.find(pattern)
    # Each file once, by the shortest of the paths that symbolic links give it.
    files = dict[str, FileEntry]()
    for entry in sorted(matches, key=lambda entry: (-entry.path.count(os.sep), entry.path)):
        is_remote = file_system.is_remote(entry.path)
        files[entry.path if is_remote else os.path.realpath(entry.path)] = entry
    if not files:
        if file_system.is_dir(pattern):
            folder = pattern.rstrip("/")
            raise DataError(
                f"{pattern} is a directory: expected files; {folder}/* means the files in it, "
                f"{folder}/** also the files of its directories"
            )
        raise DataError(f"no input file matches {pattern!r}")
    return sorted(files.values(), key=lambda entry: entry.path)


def _side_by_side(tasks: Sequence[tuple]) -> list[list[Shard]]:
    """Divides files of a bucket into shards, many at the same time: each waits for its answers."""
    with concurrent.futures.ThreadPoolExecutor(_MAX_REQUESTS) as pool:
        futures = [pool.submit(_file_shards, *task) for task in tasks]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def list_of_paths(inputs: Paths) -> list[str]:
    """Returns the paths of a corpus as strings; one path alone is a list of one.

    A data frame is written to a file in memory, whose name depends on its content.
    """
    if isinstance(inputs, DataFrame):
        from data_prep.corpus.frames import frame_url

        return [frame_url(inputs)]
    paths = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    return [os.fspath(path) for path in paths]


def shard_bytes(corpus_bytes: int) -> int:
    """Returns the shard size in bytes: balances an even load against the number of files."""
    return min(max(corpus_bytes // _TARGET_NUM_SHARDS, _MIN_SHARD_BYTES), _MAX_SHARD_BYTES)


def _file_shards(
    path: str, entry: FileEntry | None, options: ReadOptions, shard_size: int
) -> list[Shard]:
    """Divides a file into shards, as its format allows."""
    head, is_compressed = b"", False
    if entry is None:
        name = "tfds"
    elif entry.size:
        with open_stream(path, entry, DETECTION_BYTES) as (stream, file):
            head = stream.read(DETECTION_BYTES).removeprefix(BYTE_ORDER_MARK)
            is_compressed = stream is not file
        name = _format_name(path, options.format, head)
    else:
        return [Shard(path, "text", 0, 0, 0, entry)]
    text_format = TEXT_FORMATS[name]
    if text_format.parts:
        parts = text_format.parts(path, shard_size)
        return [Shard(part, name, start, stop, size, entry) for part, start, stop, size in parts]
    size = entry.size if entry is not None else 0
    if text_format.before is None or is_compressed:
        return [Shard(path, name, 0, -1, size, entry)]
    shards = []
    for start in range(0, size, shard_size):
        stop = min(start + shard_size, size)
        shards.append(Shard(path, name, start, stop, stop - start, entry))
    return shards


def _format_name(path: str, wanted: str, head: bytes) -> str:
    """Returns the format of a file; `auto` detects it by the file's name and first bytes.

    Raises:
      ConfigError: there is no such format.
      DataError: the file is not text, or its content contradicts its name.
    """
    start = head.lstrip()
    name = detected_format(path, start) if wanted == "auto" else wanted
    text_format = TEXT_FORMATS[name or "text"]
    require_data(text_format.is_file, "format", "a format of files", repr(name))
    if text_format.before:
        check_is_text(head, path)
    if text_format.check_start:
        text_format.check_start(start, path)
    if name is None:
        _check_is_plain_text(path, head)
    return text_format.name


def _check_is_plain_text(path: str, head: bytes) -> None:
    """Raises `DataError` if a file that would be read as plain text looks like something else."""
    require_data(
        ending(path) not in _TABLES,
        path,
        "text, JSON lines or Parquet",
        "a table by its name; convert it, e.g. with pandas.read_csv and to_parquet, or read its "
        "lines as text with --format=text",
    )
    first_line = head.lstrip().partition(b"\n")[0].rstrip()
    require_data(
        not _JSON_OBJECT.match(first_line) or (b"\n" in head and not first_line.endswith(b"}")),
        path,
        "text by its name",
        "what looks like JSON lines; read it with --format=jsonl, or as it is with --format=text",
    )
