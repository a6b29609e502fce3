"""Sharding of a corpus: splits input files into parts that are read in parallel.

An uncompressed file is split into byte ranges whose size depends only on the size of the corpus,
so shards do not depend on the number of workers. A compressed file or web archive is a single
shard; a Parquet file is split into groups of row groups, a TFDS split into ranges of examples.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import hashlib
import json
import os
import re
import typing
from collections.abc import Sequence
from typing import Any

import fsspec

from data_prep.corpus import web_archives
from data_prep.settings import ReadOptions
from official.xlnet.errors import DataError, require_data, require_extra
from official.xlnet.files import file_system
from official.xlnet.files.arguments import weighted
from official.xlnet.files.checksums import sha256_of
from official.xlnet.files.compression import compression, open_stream, without_compression
from official.xlnet.files.text import BYTE_ORDER_MARK, check_is_text

_MIN_SHARD_BYTES, _MAX_SHARD_BYTES, _TARGET_NUM_SHARDS = 4 << 20, 64 << 20, 256
_EXAMPLES_PER_SHARD = 20_000
_DETECTION_BYTES = 1 << 12  # Read to detect the format of a file.
_JSON_LINES, _TABLES = (".jsonl", ".json", ".ndjson"), (".csv", ".tsv")
_JSON_OBJECT = re.compile(rb'\{\s*"(?:[^"\\]|\\.)*"\s*:')
_TFDS_PREFIX = "tfds:"
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@typing.runtime_checkable
class DataFrame(typing.Protocol):
    """A data frame of pandas, or a data set of HF `datasets`."""

    def to_parquet(self, path: Any) -> Any:
        """Writes a Parquet file."""


Paths = str | os.PathLike | Sequence[str | os.PathLike] | DataFrame


@dataclasses.dataclass(frozen=True)
class Shard:
    """A part of a corpus that is read by one worker.

    Attributes:
      path: path of the file, or name and split of a TFDS data set.
      format: `text`, `jsonl`, `wiki`, `warc`, `parquet` or `tfds`.
      start: index of the first byte (uncompressed files), row group or example.
      stop: end of the range (exclusive); -1 for files that are read to the end.
      num_bytes: size on disk in bytes, for progress reports.
    """

    path: str
    format: str
    start: int
    stop: int
    num_bytes: int


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
        if pattern.startswith(_TFDS_PREFIX):
            sizes[pattern] = 0
            times[pattern] += 1
            continue
        pattern, weight = weighted(pattern)
        # A file name may contain special characters of glob patterns.
        found = [pattern] if file_system.is_file(pattern) else file_system.glob(pattern)
        # Each file once, by the shortest of the paths that symbolic links give it.
        paths = {
            path if file_system.is_remote(path) else os.path.realpath(path): path
            for path in sorted(found, key=lambda path: (-path.count(os.sep), path))
            if file_system.is_file(path)
        }
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

    A table is written to memory, under a name by its content, so that the same one resumes.
    """
    if isinstance(inputs, DataFrame):
        require_extra("pyarrow", "parquet", "a data frame as input")
        frame = inputs.to_pandas() if hasattr(inputs, "to_pandas") else inputs
        content = frame.to_parquet(None)
        name = f"/{hashlib.sha256(content).hexdigest()}.parquet"
        memory = fsspec.filesystem("memory")
        memory.pipe(name, content)
        memory.store[name].created = _EPOCH  # The name is its version, in any process.
        return [f"memory:/{name}"]
    paths = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    return [os.fspath(path) for path in paths]


def shard_bytes(corpus_bytes: int) -> int:
    """Returns the shard size in bytes: balances an even load against the number of files."""
    return min(max(corpus_bytes // _TARGET_NUM_SHARDS, _MIN_SHARD_BYTES), _MAX_SHARD_BYTES)


def _file_shards(path: str, size: int, options: ReadOptions, shard_size: int) -> list[Shard]:
    if path.startswith(_TFDS_PREFIX):
        return _tfds_shards(path)
    if not size:
        return [Shard(path, "text", 0, 0, 0)]
    kind = _format(path, options.format)
    if kind == "parquet":
        return _parquet_shards(path, shard_size)
    if kind == "warc" or compression(path) is not None:
        return [Shard(path, kind, 0, -1, size)]
    return [
        Shard(path, kind, start, min(start + shard_size, size), min(shard_size, size - start))
        for start in range(0, size, shard_size)
    ]


def _format(path: str, wanted: str) -> str:
    """Format of a file, by its name and first bytes if it is to be detected.

    Raises:
      DataError: the file is not text, or its content contradicts its name.
    """
    extension = os.path.splitext(without_compression(path))[1].lower()
    if wanted == "parquet" or (wanted == "auto" and extension == ".parquet"):
        return "parquet"
    with open_stream(path) as (stream, _):
        head = stream.read(_DETECTION_BYTES).removeprefix(BYTE_ORDER_MARK)
    if wanted == "warc" or (wanted == "auto" and head.startswith(web_archives.MARK)):
        return "warc"
    check_is_text(head, path)
    if wanted != "auto":
        return wanted
    first_line = head.lstrip().partition(b"\n")[0].rstrip()
    if extension in _JSON_LINES:
        require_data(
            not first_line.startswith(b"["),
            path,
            "a JSON object on every line",
            f"an array; convert it with: jq -c '.[]' {path} > NEW.jsonl",
        )
        return "jsonl"
    require_data(
        extension not in _TABLES,
        path,
        "text, JSON lines or Parquet",
        "a table by its name; convert it, e.g. with pandas.read_csv and to_parquet, or read its "
        "lines as text with --format=text",
    )
    require_data(
        not _JSON_OBJECT.match(first_line) or (b"\n" in head and not first_line.endswith(b"}")),
        path,
        "text by its name",
        "what looks like JSON lines; read it with --format=jsonl, or as it is with --format=text",
    )
    return "wiki" if first_line.startswith(b"<doc id=") else "text"


def _parquet_shards(path: str, shard_size: int) -> list[Shard]:
    require_extra("pyarrow", "parquet", path)
    import pyarrow
    import pyarrow.parquet as pq

    try:
        with file_system.open(path, "rb") as file:
            metadata = pq.read_metadata(file)
    except pyarrow.ArrowInvalid as error:
        raise DataError(f"{path}: expected a Parquet file: {error}") from None
    shards, start, num_bytes = [], 0, 0
    for group in range(metadata.num_row_groups):
        num_bytes += metadata.row_group(group).total_byte_size
        if num_bytes >= shard_size or group == metadata.num_row_groups - 1:
            shards.append(Shard(path, "parquet", start, group + 1, num_bytes))
            start, num_bytes = group + 1, 0
    return shards


def _tfds_shards(name: str) -> list[Shard]:
    require_extra("tensorflow_datasets", "tfds", "tfds:")
    import tensorflow_datasets as tfds

    dataset, _, split = name[len(_TFDS_PREFIX) :].partition(":")
    split = split or "train"
    splits: Any = {}
    try:
        splits = tfds.builder(dataset).info.splits
        slices = tfds.core.ReadInstruction.from_spec(split).to_absolute(splits)
    except (ValueError, AssertionError, NotImplementedError) as error:
        raise DataError(
            f"{name}: expected a split of {dataset} that is on disk, one of "
            f"{', '.join(splits) or '(none: download it with tfds build)'}, or a slice of one, "
            f"such as train[:80%]; got {split!r} ({str(error).partition(chr(10))[0]})"
        ) from None
    shards = []
    for part in slices:
        info = splits[part.splitname]
        per_example = info.num_bytes // max(1, info.num_examples)
        end = info.num_examples if part.to is None else part.to
        for start in range(part.from_ or 0, end, _EXAMPLES_PER_SHARD):
            stop = min(start + _EXAMPLES_PER_SHARD, end)
            path = f"{dataset}:{part.splitname}"
            shards.append(Shard(path, "tfds", start, stop, per_example * (stop - start)))
    return shards


def versions_of(shards: Sequence[Shard]) -> str:
    """Returns a hash of the versions of all files: times of modification, or keys of a bucket."""
    paths = dict.fromkeys(shard.path for shard in shards if shard.format != "tfds")
    return combined_hash([str(file_system.version(path)) for path in paths])


def checksum_of(shard: Shard) -> str:
    """Returns the SHA-256 of the bytes of a shard.

    The first shard of a Parquet file stands for the whole file. A file in a bucket, which would be
    fetched a second time, is represented by its version; a TFDS data set by its name.
    """
    if shard.format == "tfds" or (shard.format == "parquet" and shard.start):
        return ""
    if file_system.is_remote(shard.path):
        return str(file_system.version(shard.path))
    is_part = shard.stop >= 0 and shard.format != "parquet"
    return sha256_of(shard.path, *((shard.start, shard.stop) if is_part else ())) or ""


def combined_hash(hashes: Sequence[str]) -> str:
    """Returns a hash of hashes, in hexadecimal."""
    return hashlib.sha256(json.dumps(list(hashes)).encode()).hexdigest()


def newest_file(shards: Sequence[Shard]) -> str:
    """Returns the path of the local file that was modified last, or of any file of a bucket."""
    paths = dict.fromkeys(shard.path for shard in shards if shard.format != "tfds")
    local = [path for path in paths if not file_system.is_remote(path)]
    return max(local, key=file_system.version) if local else next(iter(paths))
