"""Versions and checksums of the files of a corpus."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from data_prep.corpus.formats import TFDS_PREFIX, Shard
from official.xlnet.configs.registry import TEXT_FORMATS
from official.xlnet.files import file_system
from official.xlnet.files.arguments import weighted
from official.xlnet.files.checksums import sha256_of


def versions_of(shards: Sequence[Shard]) -> str:
    """Returns a hash of the versions of all files when they were found."""
    versions = {shard.path: shard.entry.version for shard in shards if shard.entry is not None}
    return combined_hash(list(versions.values()))


def current_versions(inputs: Sequence[str], shards: Sequence[Shard]) -> str:
    """Returns a hash of the versions that the files have now, as `versions_of`; finds them again.

    Args:
      inputs: see `find_shards`.
      shards: the shards of the files.
    """
    versions = dict.fromkeys((shard.path for shard in shards if shard.entry is not None), "")
    for pattern in inputs:
        if pattern.startswith(TFDS_PREFIX):
            continue
        for entry in file_system.find(weighted(pattern)[0]):
            if entry.path in versions:
                versions[entry.path] = entry.version
    return combined_hash(list(versions.values()))


def checksum_of(shard: Shard) -> str:
    """Returns the SHA-256 of the bytes of a shard.

    The first shard of a file that is not divided by bytes stands for the whole file. A file in a
    bucket, which would be fetched a second time, is represented by its version; a TFDS data set by
    its name.
    """
    if not _has_checksum(shard):
        return ""
    if file_system.is_remote(shard.path):
        return shard.entry.version if shard.entry is not None else ""
    if _is_byte_range(shard):
        return sha256_of(shard.path, shard.start, shard.stop) or ""
    return sha256_of(shard.path) or ""


def is_same_content(shards: Sequence[Shard], content: str) -> bool:
    """Whether shards have the content of a data set, see `checksum_of`."""
    if combined_hash(list(map(checksum_of, shards))) == content:
        return True
    if not any(file_system.is_remote(shard.path) for shard in shards):
        return False
    return combined_hash(list(map(_former_checksum_of, shards))) == content


def _former_checksum_of(shard: Shard) -> str:
    """As `checksum_of` in 1.0.0, which asked for the version of each file in a bucket."""
    if file_system.is_remote(shard.path) and _has_checksum(shard):
        return str(file_system.version(shard.path))
    return checksum_of(shard)


def _has_checksum(shard: Shard) -> bool:
    is_first = not shard.start or _is_byte_range(shard)
    return TEXT_FORMATS[shard.format].is_file and is_first


def _is_byte_range(shard: Shard) -> bool:
    return shard.stop >= 0 and TEXT_FORMATS[shard.format].before is not None


def combined_hash(hashes: Sequence[str]) -> str:
    """Returns a hash of hashes, in hexadecimal."""
    return hashlib.sha256(json.dumps(list(hashes)).encode()).hexdigest()


def newest_file(shards: Sequence[Shard]) -> str:
    """Returns the path of the local file that was modified last, or of any file of a bucket."""
    paths = dict.fromkeys(x.path for x in shards if TEXT_FORMATS[x.format].is_file)
    local = [path for path in paths if not file_system.is_remote(path)]
    return max(local, key=file_system.version) if local else next(iter(paths))
