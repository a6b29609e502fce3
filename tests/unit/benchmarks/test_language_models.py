"""The benchmark of the language-model recipes: forms of the text, compressor, table."""

import pydoc_data.topics
import random

import pytest

from benchmarks.learning import language_models
from official.xlnet.data.schema import Manifest


def test_compressed_bits_of_random_text_are_its_entropy_and_of_seen_text_nearly_none():
    rng = random.Random(3)
    seen, new = ("".join(rng.choices("abcd", k=20_011)) for _ in range(2))
    bits = language_models.compressed_bits(seen, new) / len(new)
    assert bits == pytest.approx(2, rel=0.15)  # Four equal letters: two bits each.
    assert language_models.compressed_bits(seen, seen) / len(seen) < 0.05


def test_table():
    metrics = {"word_perplexity": 312.4, "bits_per_character": 1.6543}
    results = {"enwik8": {"evaluated": {0: metrics, 512: metrics}, "lzma": 1.9}}
    assert language_models.table_of(results).splitlines()[2:] == [
        "| `enwik8` | 0 | 312 | 1.654 |",
        "| `enwik8` | 512 | 312 | 1.654 |",
        "| LZMA, the text of `enwik8` |  |  | 1.900 |",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wikitext103", "enwik8"])
def test_each_article_is_a_document_of_the_records(tmp_path, name):
    topics = [text.replace("\n\n", "\n") for text in pydoc_data.topics.topics.values()]
    documents = [text.strip() for text in topics][:40]
    small = [
        "vocab_size=500",
        "d_model=16",
        "num_heads=2",
        "d_inner=32",
        "num_steps=2",
        "warmup_steps=0",
    ]
    lengths = [
        "seq_len=64",
        "reuse_len=48",
        "mem_len=48",
        "batch_size=2",
        "num_lanes=2",
        "num_predict=10",
    ]
    result = language_models.run(name, documents, str(tmp_path), [*small, *lengths])
    manifests = [Manifest.load(str(tmp_path / part)) for part in ("data", "test")]
    assert [manifest.splits["train"].documents for manifest in manifests] == [36, 4]
    for metrics in result["evaluated"].values():
        assert 1 < metrics["bits_per_character"] < 6
        assert metrics["characters"] == next(iter(result["evaluated"].values()))["characters"]
    assert 1 < result["lzma"] < 6
