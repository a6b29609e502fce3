"""Sharding of a corpus: splits input files into parts that are read in parallel.

A file of text is split into byte ranges whose size depends only on the size of the corpus, so
shards do not depend on the number of workers; other formats have parts of their own, or one.
"""

from __future__ import annotations

import collections
import os
import re
from collections.abc import Sequence

from data_prep.corpus.formats import DETECTION_BYTES, TFDS_PREFIX, Shard, detected_format
from data_prep.settings import ReadOptions
from official.xlnet.configs.registry import TEXT_FORMATS
from official.xlnet.errors import DataError, require_data
from official.xlnet.files import file_system
from official.xlnet.files.arguments import DataFrame, weighted
from official.xlnet.files.compression import compression, ending, open_stream
from official.xlnet.files.text import BYTE_ORDER_MARK, check_is_text

_MIN_SHARD_BYTES, _MAX_SHARD_BYTES, _TARGET_NUM_SHARDS = 4 << 20, 64 << 20, 256
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
    sizes: dict[str, int] = {}  # {path: size in bytes}; 0 for TFDS.
    times: collections.Counter[str] = collections.Counter()
    for pattern in inputs:
        if pattern.startswith(TFDS_PREFIX):
            sizes[pattern] = 0
            times[pattern] += 1
            continue
        pattern, weight = weighted(pattern)
        # A file name may contain special characters of glob patterns.
        matches = [pattern] if file_system.is_file(pattern) else file_system.glob(pattern)
        # Each file once, by the shortest of the paths that symbolic links give it.
        paths = dict[str, str]()
        for path in sorted(matches, key=lambda path: (-path.count(os.sep), path)):
            if file_system.is_file(path):
                is_remote = file_system.is_remote(path)
                paths[path if is_remote else os.path.realpath(path)] = path
        if not paths:
            if file_system.is_dir(pattern):
                folder = pattern.rstrip("/")
                raise DataError(
                    f"{pattern} is a directory: expected files; {folder}/* means the files in it, "
                    f"{folder}/** also the files of its directories"
                )
            raise DataError(f"no input file matches {pattern!r}")
        for path in sorted(paths.values()):
            sizes[path] = file_system.size(path)
            times[path] += weight
    most = shard_bytes(sum(sizes.values()))
    shards: list[Shard] = []
    for turn in range(max(times.values())):  # All files, then again those that count more.
        for path, size in sizes.items():
            if times[path] > turn:
                shards += _file_shards(path, size, options, most)
    return shards


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


def _file_shards(path: str, size: int, options: ReadOptions, shard_size: int) -> list[Shard]:
    """Divides a file into shards, as its format allows."""
    if path.startswith(TFDS_PREFIX):
        name = "tfds"
    elif size:
        name = _format_name(path, options.format)
    else:
        return [Shard(path, "text", 0, 0, 0)]
    text_format = TEXT_FORMATS[name]
    if text_format.parts:
        parts = text_format.parts(path, shard_size)
        return [Shard(part, name, start, stop, num_bytes) for part, start, stop, num_bytes in parts]
    if text_format.before is None or compression(path) is not None:
        return [Shard(path, name, 0, -1, size)]
    shards = []
    for start in range(0, size, shard_size):
        stop = min(start + shard_size, size)
        shards.append(Shard(path, name, start, stop, stop - start))
    return shards


def _format_name(path: str, wanted: str) -> str:
    """Returns the format of a file; `auto` detects it by the file's name and first bytes.

    Raises:
      ConfigError: there is no such format.
      DataError: the file is not text, or its content contradicts its name.
    """
    with open_stream(path) as (stream, _):
        head = stream.read(DETECTION_BYTES).removeprefix(BYTE_ORDER_MARK)
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
