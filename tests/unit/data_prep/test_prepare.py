"""Reproducibility, resuming, held-out and dropped documents, and what settings are refused."""

import gzip
import hashlib
import json
import os
import pathlib
import random
import shutil

import numpy as np
import pandas
import pytest
import yaml

from data_prep.corpus import corpus, frames
from data_prep.records import lane_files
from official.xlnet.data.pretraining_dataset import pretraining_dataset
from official.xlnet.data.schema import Manifest
from official.xlnet.files import file_system
from official.xlnet.files.locks import only_writer
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.compare import assert_refused
from tests.helpers.corpora import (
    as_text,
    contents,
    prepare,
    random_documents,
    read_lane,
    recipe,
    vocabulary_dir,
)
from tests.helpers.world import command


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(as_text(random_documents(random.Random(7), 40)), encoding="utf-8")
    return str(path)


def test_same_bytes_for_any_number_of_workers(tmp_path, text):
    """And any size of shards: tests/property/test_records_give_back_the_corpus.py."""
    for workers in (1, 2):
        prepare(text, tmp_path / str(workers), heldout_fraction=0.1, num_workers=workers)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_flags_say_how_text_is_read(tmp_path, text):
    """Here the ending says nothing, a text is not UTF-8, and headings begin documents."""
    documents = pathlib.Path(text).read_text().strip().split("\n\n")
    lines = [json.dumps({"body": document}).encode() for document in documents]
    (tmp_path / "a.txt").write_bytes(b"\n".join([*lines, b'{"body": "the water \xff is first"}']))
    (tmp_path / "b.txt").write_text("".join(f"== {n}\n{x}\n" for n, x in enumerate(documents)))
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe()))
    read = {"format": "jsonl", "text_field": "body", "on_bad_utf8": "replace", "progress": "false"}
    flags = {"config": tmp_path / "recipe.yaml", "vocab": vocabulary_dir()}
    command("prepare", input=tmp_path / "a.txt", output=tmp_path / "none", status=2, **flags)
    found = command("prepare", input=tmp_path / "a.txt", output=tmp_path / "a", **flags, **read)
    assert found["documents"] == len(documents) + 1
    headings = {"input": tmp_path / "b.txt", "document_start": "== "}
    found = command("prepare", output=tmp_path / "b", **flags, **headings)
    assert found["documents"] == len(documents)
    flags = {"input": tmp_path / "a.txt", "output": tmp_path / "vocab", "size": 80, **read}
    assert command("vocab", sample_bytes=3000, **flags)["vocab_size"] == 80


def test_another_vocabulary_in_the_same_directory(tmp_path, text):
    """A process reads both from one path, one after the other."""
    prepare(text, tmp_path / "one", vocabulary_dir())
    shutil.rmtree(tmp_path / "one")
    for name in ("one", "other"):
        prepare(text, tmp_path / name, vocabulary_dir(190))
    assert contents(tmp_path / "one") == contents(tmp_path / "other")


def test_a_frame_is_read_as_its_parquet_file(tmp_path):
    """The same records; an equal frame, in any process, is the same text and another is not."""
    texts = [" ".join(document) * 9 for document in random_documents(random.Random(3), 40)]
    frame = pandas.DataFrame({"number": range(len(texts)), "text": texts}, index=texts)
    frame.to_parquet(tmp_path / "texts.parquet")
    prepare(tmp_path / "texts.parquet", tmp_path / "file")
    prepare(frame, tmp_path / "frame", num_workers=2)
    files, frame_files = contents(tmp_path / "file"), contents(tmp_path / "frame")
    assert files.pop("manifest.json") != frame_files.pop("manifest.json")
    assert files == frame_files
    frames._contents.clear()  # As in another process.
    assert prepare(frame.copy(), tmp_path / "frame")["documents"] == len(texts)
    assert_refused(
        "another data set .of other text, frame:", prepare, frame[1:], tmp_path / "frame"
    )
    url = frames.frame_url(frame)
    # What fsspec gave for a file in memory, which data sets of 1.0.0 have recorded.
    info = f"{{'name': '{url[7:]}', 'size': {file_system.size(url)}, 'type': 'file', "
    info += "'created': datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)}"
    assert file_system.version(url) == hashlib.sha256(info.encode()).hexdigest()
    assert_refused("expected a path, got a text of", prepare, texts, tmp_path / "list")


def test_compressed_records_are_the_same_records(tmp_path, text):
    prepare(text, tmp_path / "plain")
    for name in ("gzip", "again"):
        prepare(text, tmp_path / name, compress=True)
    plain, packed = contents(tmp_path / "plain"), contents(tmp_path / "gzip")
    assert packed == contents(tmp_path / "again")
    names = [name for name in plain if name.endswith(".tfrecord")]
    assert [gzip.decompress(packed[name]) for name in names] == [plain[name] for name in names]
    assert all(len(packed[name]) < len(plain[name]) for name in names)
    batches = (pretraining_dataset(str(tmp_path / name), 2) for name in ("plain", "gzip"))
    plain, packed = (next(each.as_numpy_iterator()) for each in batches)
    for feature in plain:
        np.testing.assert_array_equal(plain[feature], packed[feature])


def test_stretches_of_a_lane_join_without_a_seam(tmp_path, text, monkeypatch):
    """Where B is drawn from depends on the stretch; all else does not."""
    prepare(text, tmp_path / "a")
    monkeypatch.setattr(lane_files, "_CHUNK_TOKENS", 101)
    prepare(text, tmp_path / "b")
    for name in Manifest.load(str(tmp_path / "a")).splits["train"].files:
        pairs = zip(read_lane(tmp_path / "a" / name), read_lane(tmp_path / "b" / name), strict=True)
        for a, b in pairs:
            assert a["token_ids"][:11] == b["token_ids"][:11]
            assert (a["context_length"], a["is_next"]) == (b["context_length"], b["is_next"])
            assert not a["is_next"] or a["a_length"] == b["a_length"]


def test_work_that_is_done_is_kept(tmp_path, text, monkeypatch):
    monkeypatch.setattr(corpus, "shard_bytes", lambda _: 997)
    expected = prepare(text, tmp_path / "whole")
    assert expected.pop("resumed_shards") == expected.pop("resumed_lanes") == 0

    # Stopped in the third lane.
    calls, original = [], lane_files.encode_windows

    def stop(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(lane_files, "encode_windows", stop)
    with pytest.raises(KeyboardInterrupt):
        prepare(text, tmp_path / "stopped")
    assert not (tmp_path / "stopped" / "manifest.json").exists()
    monkeypatch.setattr(lane_files, "encode_windows", original)
    # One of the two lanes is damaged meanwhile: its checksum shows it.
    (tmp_path / "stopped/train-00000-of-00006.tfrecord").write_bytes(b"x")
    figures = prepare(text, tmp_path / "stopped")
    assert figures.pop("resumed_shards") == -(-os.path.getsize(text) // 997)
    assert figures.pop("resumed_lanes") == 1
    assert figures == expected
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


def test_a_finished_data_set_is_left_alone_and_no_other_is_overwritten(tmp_path, text):
    out = tmp_path / "out"
    prepare(text, out)
    before, inodes = contents(out), {path: path.stat().st_ino for path in out.iterdir()}
    with only_writer(str(out)):  # Needs no lock, as the directory may be read-only.
        assert prepare(text, out)["documents"] == 40
    assert inodes == {path: path.stat().st_ino for path in out.iterdir()}
    assert_refused(
        r"already holds another data set \(seed was \d+, is 4\)", prepare, text, out, seed=4
    )
    assert contents(out) == before
    # What is missing is written again, by renames: training keeps the files that it has opened.
    os.unlink(out / "manifest.json")
    os.unlink(out / "train-00001-of-00006.tfrecord")
    name = "train-00000-of-00006.tfrecord"
    with open(out / name, "rb") as opened:
        prepare(text, out)
        assert contents(out) == before
        assert (out / name).stat().st_ino != inodes[out / name]
        assert os.fstat(opened.fileno()).st_nlink == 0


def test_equal_documents_are_on_one_side_of_the_split(tmp_path):
    path = tmp_path / "text.txt"
    documents = random_documents(random.Random(1), 10)
    path.write_text(as_text(documents * 5), encoding="utf-8")
    prepare(path, tmp_path / "out", heldout_fraction=0.3)
    assert Manifest.load(str(tmp_path / "out")).splits["heldout"].documents in (10, 15, 20)
    path.write_text(as_text(documents[:1] * 9), encoding="utf-8")
    prepare(path, tmp_path / "same", heldout_fraction=0.3)
    assert list(Manifest.load(str(tmp_path / "same")).splits) == ["train"]


def test_documents_that_are_short_beside_windows_are_told(tmp_path, caplog):
    path = tmp_path / "text.txt"
    lines = [" ".join(lines) for lines in random_documents(random.Random(3), 40)]
    path.write_text("\n\n".join(["CHAPTER I", *lines]), encoding="utf-8")
    message = "41 documents have {} tokens on average, windows 150; blank lines separate documents"
    figures = prepare(path, tmp_path / "out", seq_len=150, num_lanes=2)
    assert message.format(figures["tokens"] // 41) in caplog.text
    caplog.clear()
    options = dict(seq_len=150, num_lanes=2, document_start="CHAPTER")
    assert prepare(path, tmp_path / "whole", **options)["documents"] == 1
    assert "on average" not in caplog.text


def test_duplicates_and_poor_documents_are_counted(tmp_path, caplog):
    documents = [[f"Number {i} of the people. They said so."] for i in "abcdefghijklmnopqrst"]
    poor = [["-- 12 34 56 %% 99 ** 7 8 9 10 11"], ["the same line"] * 3, ["short"]]
    path = tmp_path / "text.txt"
    path.write_text(as_text(documents + poor + documents[3:10]), encoding="utf-8")
    filters = dict(drop_duplicates=True, drop_low_quality=True, min_words=2)
    figures = prepare(path, tmp_path / "out", **filters)
    expected = dict(documents=20, duplicates=7, low_quality=2, too_short=1, empty=0)
    assert {name: figures[name] for name in expected} == expected
    assert Manifest.load(str(tmp_path / "out")).source["counts"]["duplicates"] == 7
    assert "--set=training.batch_size=6 or less" in caplog.text  # As there are six lanes.
    caplog.clear()
    assert prepare(path, tmp_path / "all", num_lanes=16)["documents"] == 30
    assert "--set=training.batch_size" not in caplog.text


@pytest.mark.parametrize("num_short", [0, 200])
def test_shares_of_unknown_text_are_of_the_documents_that_are_kept(num_short, tmp_path, caplog):
    """Dropped ones, and copies that are dropped later, make no share smaller or larger."""
    rng = random.Random(num_short)
    kept = [f"{'☃' * rng.randint(0, 9)} the {'water ' * rng.randint(2, 9)}" for _ in range(9)]
    kept += 30 * ["☃ ☃ ☃ ☃"]
    documents = kept + num_short * ["the water"]
    path = tmp_path / "text.txt"
    shuffled = rng.sample(documents, len(documents))
    path.write_text(as_text([[line] for line in shuffled]), encoding="utf-8")
    tokenizer = Tokenizer(vocabulary_dir())
    tokenizer.encode_batch(kept)
    counts, num_tokens = tokenizer.counts, tokenizer.counts["tokens"] + len(kept)
    share = counts["unknown_characters"] / counts["characters"]
    options = dict(min_words=3, num_lanes=2, seq_len=9, reuse_len=4, max_unknown=share + 0.2)
    figures = prepare(path, tmp_path / "out", drop_duplicates=True, **options)
    assert f", {share:.1%} of all" in caplog.text
    assert figures["too_short"] == num_short and figures["duplicates"] >= 29
    assert figures["unknown_share"] == round(counts["unknown_tokens"] / num_tokens, 4)
    again = prepare(path, tmp_path / "out", drop_duplicates=True, **options)
    assert again.items() <= figures.items()


def test_both_directions_need_an_even_number_of_lanes(tmp_path):
    for num_lanes in (1, 7):
        assert_refused(
            "data.num_lanes: expected an even number with bidirectional data",
            prepare,
            tmp_path / "text.txt",
            tmp_path / "out",
            num_lanes=num_lanes,
        )


def test_fewer_lanes_if_they_are_allowed(tmp_path):
    (tmp_path / "text.txt").write_text("the time of all the people. " * 5)
    assert_refused(
        "allow_fewer_lanes reduces the number of lanes",
        prepare,
        tmp_path / "text.txt",
        tmp_path / "out",
        num_lanes=100,
    )
    options = dict(num_lanes=100, allow_fewer_lanes=True)
    tokens = prepare(tmp_path / "text.txt", tmp_path / "out", **options)["tokens"]
    split = Manifest.load(str(tmp_path / "out")).splits["train"]
    assert split.windows_per_lane == 1 and split.num_lanes == tokens // 11 * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": "nothing-*"}, "no input file matches 'nothing-.*'"),
        ({"inputs": "tests/unit/"}, r"is a directory.*unit/\* means the files in it, .*/\*\* "),
        ({"vocab": "tests"}, "no vocabulary at"),
        ({"vocab": __file__}, "vocabulary .*expected a SentencePiece model"),
        ({"reuse_len": 0}, "data.reuse_len: expected from 1 to seq_len - 5 = 24"),
        ({"reuse_len": 25}, "data.reuse_len: expected from 1 to seq_len - 5 = 24"),
    ],
)
def test_wrong_settings(tmp_path, text, options, message):
    assert_refused(message, prepare, **{"inputs": text, "output": tmp_path / "out", **options})
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_given_text_is_held_out_and_its_copies_are_not_trained_on(tmp_path):
    documents = random_documents(random.Random(5), 60)
    (tmp_path / "a.txt").write_text(as_text(documents[:45]))
    (tmp_path / "b.txt").write_text(as_text(documents[40:]))
    heldout = [str(tmp_path / "b.txt")]
    for name, workers in (("one", 1), ("two", 2)):
        options = {"heldout_inputs": heldout, "num_workers": workers}
        options["drop_duplicates"] = name == "two"  # The held-out copy is the one that is kept.
        assert prepare([str(tmp_path / "a.txt")], tmp_path / name, **options)["duplicates"] == 5
        splits = Manifest.load(str(tmp_path / name)).splits
        assert {split: splits[split].documents for split in splits} == {"train": 40, "heldout": 20}
    one, two = (contents(tmp_path / name, "*.tfrecord") for name in ("one", "two"))
    assert one == two
    (tmp_path / "c.txt").write_text("of\n")
    assert_refused(
        r"heldout_input: expected at least a window, \d+ tokens",
        prepare,
        [str(tmp_path / "a.txt")],
        tmp_path / "c",
        heldout_inputs=[str(tmp_path / "c.txt")],
    )
