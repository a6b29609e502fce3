"""The held-out split of many documents: its share, and the memory that it takes."""

import tracemalloc

import numpy as np
import pytest

from data_prep.record_settings import Settings
from data_prep.records.splits import split_documents
from data_prep.records.token_files import DOCUMENT, shard_file
from tests.helpers.corpora import data_config


@pytest.mark.parametrize("drop_duplicates", [False, True])
def test_memory_of_a_document(tmp_path, drop_duplicates):
    rng, shards, documents = np.random.default_rng(0), 3, 100_003
    for shard in range(shards):
        table = np.empty(documents, DOCUMENT)
        table["length"] = rng.integers(1, 999, documents)
        table["fingerprint"] = rng.integers(1 << 40, size=documents, dtype=np.uint64)
        table.tofile(shard_file(str(tmp_path), shard, "documents"))
    data = data_config(heldout_fraction=0.03).data
    settings = Settings.from_config(data, drop_duplicates=drop_duplicates)
    tracemalloc.start()
    splits, _ = split_documents(str(tmp_path), shards, settings, np.dtype("<u2"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    train, heldout = (split.tokens for split in splits)
    assert heldout / (train + heldout) == pytest.approx(0.03, rel=0.02)
    assert peak < 40 * shards * documents, "docs/data_preparation.md says 32 bytes of each"
