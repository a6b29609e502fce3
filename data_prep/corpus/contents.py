"""What a data set was made from: versions and checksums of the input files.

Versions, which cost nothing, are compared first. Where they differ, as in a copy, the contents are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from data_prep.corpus.corpus import Shard
from official.xlnet.files import file_system
from official.xlnet.files.checksums import sha256_of


def versions(shards: Sequence[Shard]) -> str:
    """Returns a hash of the versions of all files: times of modification, or keys of a bucket."""
    paths = dict.fromkeys(shard.path for shard in shards if shard.format != "tfds")
    return combined([str(file_system.version(path)) for path in paths])


def checksum(shard: Shard) -> str:
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


def combined(hashes: Sequence[str]) -> str:
    """Returns a hash of hashes, in hexadecimal."""
    return hashlib.sha256(json.dumps(list(hashes)).encode()).hexdigest()


def newest(shards: Sequence[Shard]) -> str:
    """Returns the path of the local file that was modified last, or of any file of a bucket."""
    paths = dict.fromkeys(shard.path for shard in shards if shard.format != "tfds")
    local = [path for path in paths if not file_system.is_remote(path)]
    return max(local, key=file_system.version) if local else next(iter(paths))
