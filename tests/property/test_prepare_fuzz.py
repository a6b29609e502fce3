"""Mutated inputs: a clear sentence or a data set in which every document is counted."""

import bz2
import gzip
import lzma
import random

import pytest
import zstandard

from data_prep.corpus import corpus, readers
from official.xlnet.data.schema import Manifest
from official.xlnet.errors import DataError
from tests.helpers.corpora import as_text, prepare, random_documents

COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.compress,
}


def insert(data, rng, what):
    place = rng.randrange(len(data) + 1)
    return data[:place] + what + data[place:]


MUTATIONS = {
    "random bytes": lambda d, r: insert(d, r, r.randbytes(r.randint(1, 9))),
    "nul": lambda d, r: insert(d, r, b"\x00" * r.randint(1, 99)),
    "control characters": lambda d, r: insert(d, r, bytes(r.choices(range(32), k=9))),
    "cut": lambda d, r: d[: r.randrange(len(d) + 1)],
    "enormous line": lambda d, r: insert(d, r, b"word " * r.randint(1000, 9000)),
    "line without spaces": lambda d, r: insert(d, r, b"x" * r.randint(1000, 9000)),
    "blank lines": lambda d, r: insert(d, r, b"\n \t\n" * r.randint(1, 50)),
    "only blank lines": lambda d, r: b"\n" * r.randint(0, 99),
    "one-word documents": lambda d, r: b"\n\n".join(d.split()),
    "carriage returns": lambda d, r: d.replace(b"\n", r.choice([b"\r", b"\r\n", b"\n\r"])),
    "mixed line ends": lambda d, r: b"".join(
        r.choice([b"\r", b"\r\n", b"\n", b"\n\n"]) if c == 10 else bytes([c]) for c in d
    ),
    "utf-16": lambda d, r: d.decode(errors="replace").encode("utf-16"),
    "byte order mark": lambda d, r: insert(d, r, b"\xef\xbb\xbf"),
    "combining marks": lambda d, r: insert(d, r, "\u0301\u200b\u2028".encode() * r.randint(1, 99)),
    "surrogates": lambda d, r: insert(d, r, b"\xed\xa0\x80"),
    "special pieces": lambda d, r: insert(d, r, b"<sep><cls> <eod> <unk> "),
    "flipped bits": lambda d, r: bytes(c ^ (r.random() < 0.01) << r.randrange(8) for c in d),
    "wiki marks": lambda d, r: insert(d, r, b"\n<doc id=1>\n"),
    "nothing": lambda d, r: d,
}


def mutated_input(rng, directory):
    """Writes one file or two; returns how many documents a plain reading finds, if it can."""
    documents = random_documents(rng, rng.randint(1, 8), most_lines=4)
    ending = rng.choice(["txt", "txt", "txt", "jsonl", "json", "parquet", *COMPRESS])
    data = as_text(documents).encode()
    if ending.startswith("json"):
        data = b"".join(b'{"text": "%s"}\n' % " ".join(lines).encode() for lines in documents)
    damage_packed = rng.random() < 0.3
    for _ in range(rng.randint(1, 3)):
        data = rng.choice(list(MUTATIONS.values()))(data, rng)
    if ending in COMPRESS:
        data = COMPRESS[ending](data)
        if damage_packed:
            data = MUTATIONS[rng.choice(["cut", "flipped bits", "random bytes"])](data, rng)
    (directory / f"text.{ending}").write_bytes(data)
    if rng.random() < 0.2:
        (directory / "more.txt").write_text(as_text(random_documents(rng, 2)), encoding="utf-8")
    return data if ending == "txt" else None


def count_documents(data):
    """Documents of plain text, counted in another way than the reader's."""
    lines = data.decode(errors="replace").replace("\ufeff", "").replace("\0", "")
    lines = lines.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    blank = [not line.strip() for line in lines]
    return sum(not now and (i == 0 or blank[i - 1]) for i, now in enumerate(blank))


@pytest.mark.parametrize(
    "seeds",
    [range(50), pytest.param([*range(50, 150), *range(1000, 1600)], marks=pytest.mark.nightly)],
    ids=["some", "more"],
)
def test_mutated_inputs(tmp_path, monkeypatch, seeds):
    outcomes = {"data set": 0, "sentence": 0}
    for seed in seeds:
        rng, where = random.Random(seed), tmp_path / str(seed)
        where.mkdir()
        data = mutated_input(rng, where)
        # Small limits, so that small inputs meet them.
        size = rng.choice([97, 1000, 1 << 20])
        monkeypatch.setattr(corpus, "shard_bytes", lambda _, size=size: size)
        monkeypatch.setattr(readers, "BATCH_BYTES", rng.choice([61, 1 << 20]))
        monkeypatch.setattr(readers, "_PART_BYTES", rng.choice([17, 1 << 20]))
        monkeypatch.setattr(readers, "MAX_DOCUMENT_BYTES", rng.choice([500, 1 << 20]))
        monkeypatch.setattr(readers, "MAX_LINE_CHARS", rng.choice([50, 1 << 16]))
        options = dict(seq_len=11, reuse_len=3, num_lanes=2, heldout_fraction=0.2)
        options["on_bad_utf8"] = rng.choice(["error", "replace"])
        options["drop_duplicates"], options["min_words"] = rng.random() < 0.5, rng.choice([0, 2])
        try:
            figures = prepare(where / "*.*", where / "out", **options)
        except DataError as error:
            assert len(str(error)) > 20 and "\n" not in str(error), seed
            outcomes["sentence"] += 1
            continue
        outcomes["data set"] += 1
        splits = Manifest.load(str(where / "out")).splits.values()
        assert figures["documents"] == sum(split.documents for split in splits)
        for split in splits:
            assert split.windows * 3 // 2 + split.dropped_tokens == split.tokens
        kinds = ("documents", "empty", "too_short", "low_quality", "duplicates")
        counted = sum(figures[name] for name in kinds) - figures["divided_documents"]
        if data is not None and not data.lstrip().startswith(b"<doc id="):
            expected = count_documents(data) + 2 * (where / "more.txt").exists()
            assert expected <= counted <= expected + figures["cut_documents"], seed
    assert min(outcomes.values()) > len(seeds) // 6, outcomes
