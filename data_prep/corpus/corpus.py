"""Input patterns to shards: the pieces of a corpus that workers read on their own.

A plain file is cut into byte ranges of a size that only the corpus decides, so what a shard holds
never depends on the number of workers. A compressed file is one shard; a Parquet file gives one
for a few row groups, a TFDS split one for a range of examples.
"""

from __future__ import annotations

import bz2
import contextlib
import dataclasses
import glob
import gzip
import lzma
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import zstandard

from data_prep.settings import ReadOptions
from official.xlnet.errors import DataError

_MIN_SHARD_BYTES, _MAX_SHARD_BYTES, _SHARDS_WANTED = 4 << 20, 64 << 20, 256
_EXAMPLES_PER_SHARD = 20_000
_ZSTD_INPUT_BYTES = 1 << 15  # Small, as it may decompress to a thousand times as much.
_TFDS_PREFIX = "tfds:"
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".lzma": "xz", ".zst": "zstd"}


@dataclasses.dataclass(frozen=True)
class Shard:
    """A piece of the corpus.

    Attributes:
      path: a file, or the name and split of a TFDS data set.
      format: `text`, `jsonl`, `wiki`, `parquet` or `tfds`.
      start: first byte (of plain files), row group or example.
      stop: end of the range; -1 for compressed files, which are read whole.
      num_bytes: size on disk, for progress.
    """

    path: str
    format: str
    start: int
    stop: int
    num_bytes: int


def find_shards(inputs: Sequence[str], options: ReadOptions) -> list[Shard]:
    """Returns the shards of a corpus, in reading order.

    Args:
      inputs: file names, glob patterns (`**` reaches into directories) or `tfds:NAME:SPLIT`.
        The files of a pattern are read in the order of their names, each file once.
      options: gives `format`.

    Raises:
      DataError: a pattern matches nothing, or a file cannot be what its name says.
    """
    if not inputs:
        raise DataError("no input: expected file names or patterns")
    files: dict[str, int] = {}  # Sizes; TFDS names have none.
    for pattern in inputs:
        if pattern.startswith(_TFDS_PREFIX):
            files[pattern] = 0
            continue
        paths = [p for p in sorted(glob.glob(pattern, recursive=True)) if os.path.isfile(p)]
        if not paths and os.path.isfile(pattern):
            paths = [pattern]  # A name with characters that mean something in patterns.
        if not paths:
            raise DataError(f"no input file matches {pattern!r}")
        files |= {path: os.path.getsize(path) for path in paths}
    size = shard_bytes(sum(files.values()))
    shards: list[Shard] = []
    for path in files:
        if path.startswith(_TFDS_PREFIX):
            shards += _tfds_shards(path)
        else:
            shards += _file_shards(path, options, size)
    return shards


def shard_bytes(corpus_bytes: int) -> int:
    """Size of the byte ranges of plain files: small ones for an even load, not too many files."""
    return min(max(corpus_bytes // _SHARDS_WANTED, _MIN_SHARD_BYTES), _MAX_SHARD_BYTES)


@contextlib.contextmanager
def open_stream(path: str) -> Iterator[tuple[Any, BinaryIO]]:
    """Opens a file for reading in binary, decompressed by the ending of its name.

    Yields:
      The stream of text, and the file under it, whose position tells how far reading has come.

    Raises:
      DataError: inside the block, when what is read is no such compressed file or ends early.
    """
    kind = compression(path)
    try:
        with open(path, "rb") as file:
            yield (file if kind is None else _DECOMPRESS[kind](file)), file
    except (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        raise DataError(f"{path}: expected a whole {kind} file: {error}") from None
    except OSError as error:
        if error.errno is None and kind is not None:  # Bad magic numbers are OSErrors, too.
            raise DataError(f"{path}: expected a {kind} file: {error}") from None
        raise


def compression(path: str) -> str | None:
    """`gzip`, `bz2`, `xz` or `zstd` by the ending of a name, None for plain files."""
    return _COMPRESSED.get(os.path.splitext(path)[1].lower())


class _ZstdFile:
    """Reads all frames of a zstd file; unlike the library's reader, notices a missing end."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self._decompressor: Any = None
        self._pending = b""

    def read(self, size: int) -> bytes:
        """Returns some bytes, none at the end of the file, however many are asked for."""
        del size
        while True:
            data = self._pending or self._file.read(_ZSTD_INPUT_BYTES)
            self._pending = b""
            if not data:
                if self._decompressor is not None:
                    raise EOFError("compressed file ended before the end of a frame")
                return b""
            if self._decompressor is None:
                self._decompressor = zstandard.ZstdDecompressor().decompressobj()
            out = self._decompressor.decompress(data)
            if self._decompressor.eof:
                self._pending = self._decompressor.unused_data
                self._decompressor = None
            if out:
                return out


_DECOMPRESS: dict[str, Callable[[BinaryIO], Any]] = {
    "gzip": gzip.open,
    "bz2": bz2.open,
    "xz": lzma.open,
    "zstd": _ZstdFile,
}


def _file_shards(path: str, options: ReadOptions, shard_size: int) -> list[Shard]:
    size = os.path.getsize(path)
    kind = options.format if options.format != "auto" else _guess_format(path)
    if kind == "parquet":
        return _parquet_shards(path, shard_size)
    if compression(path) is not None:
        return [Shard(path, kind, 0, -1, size)]
    return [
        Shard(path, kind, start, min(start + shard_size, size), min(shard_size, size - start))
        for start in range(0, size, shard_size)
    ]


def _guess_format(path: str) -> str:
    stem = os.path.splitext(path)[0] if compression(path) else path
    ending = os.path.splitext(stem)[1].lower()
    if ending in (".jsonl", ".json", ".ndjson"):
        return "jsonl"
    if ending == ".parquet":
        return "parquet"
    with open_stream(path) as (stream, _):
        first = stream.read(64)
    return "wiki" if first.lstrip().startswith(b"<doc id=") else "text"


def _parquet_shards(path: str, shard_size: int) -> list[Shard]:
    import pyarrow
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path)
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
    import tensorflow_datasets as tfds

    dataset, _, split = name[len(_TFDS_PREFIX) :].partition(":")
    split = split or "train"
    try:
        builder = tfds.builder(dataset)
    except (tfds.core.registered.DatasetNotFoundError, ValueError) as error:
        first_line = str(error).partition("\n")[0]
        raise DataError(f"{name}: TFDS has no such data set on disk: {first_line}") from None
    if split not in builder.info.splits:
        raise DataError(
            f"{name}: expected a split of {dataset} that is on disk, one of "
            f"{', '.join(builder.info.splits) or '(none: download it with tfds build)'}; "
            f"got {split!r}"
        )
    info = builder.info.splits[split]
    per_example = info.num_bytes // max(1, info.num_examples)
    return [
        Shard(
            f"{dataset}:{split}",
            "tfds",
            start,
            min(start + _EXAMPLES_PER_SHARD, info.num_examples),
            per_example * min(_EXAMPLES_PER_SHARD, info.num_examples - start),
        )
        for start in range(0, info.num_examples, _EXAMPLES_PER_SHARD)
    ]
