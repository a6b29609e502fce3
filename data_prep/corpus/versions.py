"""Versions and checksums of the files of a corpus."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from data_prep.corpus.formats import Shard
from official.xlnet.configs.registry import TEXT_FORMATS
from official.xlnet.files import file_system
from official.xlnet.files.checksums import sha256_of


def versions_of(shards: Sequence[Shard]) -> str:
    """Returns a hash of the versions of all files: times of modification, or keys of a bucket."""
    paths = dict.fromkeys(x.path for x in shards if TEXT_FORMATS[x.format].is_file)
    return combined_hash([str(file_system.version(path)) for path in paths])


def checksum_of(shard: Shard) -> str:
    """Returns the SHA-256 of the bytes of a shard.

    The first shard of a file that is not divided by bytes stands for the whole file. A file in a
    bucket, which would be fetched a second time, is represented by its version; a TFDS data set by
    its name.
    """
    text_format = TEXT_FORMATS[shard.format]
    is_byte_range = shard.stop >= 0 and text_format.before is not None
    if not text_format.is_file or (shard.start and not is_byte_range):
        return ""
    if file_system.is_remote(shard.path):
        return str(file_system.version(shard.path))
    if is_byte_range:
        return sha256_of(shard.path, shard.start, shard.stop) or ""
    return sha256_of(shard.path) or ""


def combined_hash(hashes: Sequence[str]) -> str:
    """Returns a hash of hashes, in hexadecimal."""
    return hashlib.sha256(json.dumps(list(hashes)).encode()).hexdigest()


def newest_file(shards: Sequence[Shard]) -> str:
    """Returns the path of the local file that was modified last, or of any file of a bucket."""
    paths = dict.fromkeys(x.path for x in shards if TEXT_FORMATS[x.format].is_file)
    local = [path for path in paths if not file_system.is_remote(path)]
    return max(local, key=file_system.version) if local else next(iter(paths))
