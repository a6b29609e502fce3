"""Reproducibility, resuming, held-out documents, and what wrong input gives."""

import bz2
import gzip
import lzma
import os
import random

import numpy as np
import pytest
import zstandard

from data_prep.corpus import corpus, readers
from data_prep.corpus.readers import Counts, read_documents
from data_prep.pipelines.prepare import prepare
from data_prep.records import lane_files
from data_prep.settings import ReadOptions
from official.xlnet.data.pretraining_dataset import pretraining_dataset
from official.xlnet.data.schema import Manifest
from official.xlnet.errors import DataError
from official.xlnet.files.locks import only_writer
from tests.helpers.corpora import as_text, data_config, random_documents, vocabulary_dir


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(as_text(random_documents(random.Random(7), 40)), encoding="utf-8")
    return str(path)


def contents(directory):
    """{file name: bytes}, of everything in a directory."""
    found = {}
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), "rb") as file:
            found[name] = file.read()
    return found


def run(inputs, output, vocab=None, num_workers=1, **changes):
    options = {
        key: changes.pop(key) for key in list(changes) if key not in vars(data_config().data)
    }
    return prepare(
        [inputs] if isinstance(inputs, str) else inputs,
        vocab or vocabulary_dir(),
        data_config(**changes),
        str(output),
        num_workers=num_workers,
        **options,
    )


def test_same_bytes_for_any_number_of_workers_and_size_of_shards(tmp_path, text_file, monkeypatch):
    run(text_file, tmp_path / "a", heldout_fraction=0.1)
    run(text_file, tmp_path / "b", heldout_fraction=0.1, num_workers=2)
    whole = contents(tmp_path / "a")
    assert whole == contents(tmp_path / "b")
    monkeypatch.setattr(corpus, "shard_bytes", lambda _: 997)
    run(text_file, tmp_path / "c", heldout_fraction=0.1)
    small = contents(tmp_path / "c")
    whole.pop("manifest.json"), small.pop("manifest.json")
    assert whole == small


def test_compressed_records_are_the_same_records(tmp_path, text_file):
    run(text_file, tmp_path / "plain")
    for name in ("gzip", "again"):
        run(text_file, tmp_path / name, compress=True)
    plain, packed = contents(tmp_path / "plain"), contents(tmp_path / "gzip")
    assert packed == contents(tmp_path / "again")
    records = [name for name in plain if name.endswith(".tfrecord")]
    assert records
    for name in records:
        assert gzip.decompress(packed[name]) == plain[name]
        assert len(packed[name]) < len(plain[name])
    batches = [
        next(iter(pretraining_dataset(str(tmp_path / name), batch_size=2)))
        for name in ("plain", "gzip")
    ]
    for feature in batches[0]:
        np.testing.assert_array_equal(batches[0][feature], batches[1][feature])


def test_stretches_of_a_lane_join_without_a_seam(tmp_path, text_file, monkeypatch):
    run(text_file, tmp_path / "a")
    monkeypatch.setattr(lane_files, "_CHUNK_TOKENS", 101)
    run(text_file, tmp_path / "b")
    a, b = Manifest.load(str(tmp_path / "a")), Manifest.load(str(tmp_path / "b"))
    assert a.splits["train"].windows == b.splits["train"].windows
    import tensorflow as tf

    def fixed(directory):
        for name in a.splits["train"].files:
            for record in tf.data.TFRecordDataset(f"{directory}/{name}").as_numpy_iterator():
                features = tf.train.Example.FromString(record).features.feature
                yield (
                    list(features["token_ids"].int64_list.value[:11]),
                    features["context_length"].int64_list.value[0],
                    features["a_length"].int64_list.value[0] if _is_next(features) else None,
                )

    def _is_next(features):
        return features["is_next"].int64_list.value[0]

    assert list(fixed(tmp_path / "a")) == list(fixed(tmp_path / "b"))


def test_work_that_is_done_is_kept(tmp_path, text_file, monkeypatch):
    monkeypatch.setattr(corpus, "shard_bytes", lambda _: 997)
    expected = run(text_file, tmp_path / "whole")
    num_shards = -(-os.path.getsize(text_file) // 997)
    assert expected.pop("resumed_shards") == expected.pop("resumed_lanes") == 0

    # Stopped in the third lane.
    calls = []
    original = lane_files.encode_windows

    def stop(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(lane_files, "encode_windows", stop)
    with pytest.raises(KeyboardInterrupt):
        run(text_file, tmp_path / "stopped")
    assert not (tmp_path / "stopped" / "manifest.json").exists()
    monkeypatch.setattr(lane_files, "encode_windows", original)
    # One of the two lanes is damaged meanwhile: its checksum shows it.
    with open(tmp_path / "stopped" / "train-00000-of-00006.tfrecord", "ab") as file:
        file.write(b"x")
    figures = run(text_file, tmp_path / "stopped")
    assert figures.pop("resumed_shards") == num_shards
    assert figures.pop("resumed_lanes") == 1
    assert figures == expected
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


def test_a_finished_data_set_is_left_alone_and_no_other_is_overwritten(tmp_path, text_file):
    run(text_file, tmp_path / "out")
    before = contents(tmp_path / "out")
    assert run(text_file, tmp_path / "out")["documents"] == 40
    assert contents(tmp_path / "out") == before
    with only_writer(str(tmp_path / "out")):  # Needs no lock, as the directory may be read-only.
        assert run(text_file, tmp_path / "out")["documents"] == 40
    with pytest.raises(DataError, match="already holds a data set of other text or settings"):
        run(text_file, tmp_path / "out", seed=4)
    os.unlink(tmp_path / "out" / "train-00001-of-00006.tfrecord")
    run(text_file, tmp_path / "out")
    assert contents(tmp_path / "out") == before


def test_a_data_set_that_is_written_again_is_read_to_its_end(tmp_path, text_file):
    """Its files are replaced by renames, so that training keeps those that it has opened."""
    run(text_file, tmp_path / "out")

    def batches():
        data = pretraining_dataset(str(tmp_path / "out"), 6, epochs=1)
        return data.as_numpy_iterator()

    expected, found = list(batches()), batches()
    first = [next(found)]
    inodes = {path: path.stat().st_ino for path in (tmp_path / "out").glob("train-*")}
    os.unlink(tmp_path / "out" / "spiece.model")
    os.unlink(tmp_path / "out" / "manifest.json")
    run(text_file, tmp_path / "out")
    assert all(path.stat().st_ino != inodes[path] for path in inodes)
    for batch, other in zip([*first, *found], expected, strict=True):
        for name, value in batch.items():
            np.testing.assert_array_equal(value, other[name])


def test_held_out_documents(tmp_path, text_file):
    run(text_file, tmp_path / "out", heldout_fraction=0.25)
    splits = Manifest.load(str(tmp_path / "out")).splits
    assert splits["heldout"].documents == 10 and splits["train"].documents == 30


def test_equal_documents_are_on_one_side_of_the_split(tmp_path):
    path = tmp_path / "text.txt"
    documents = random_documents(random.Random(1), 10)
    path.write_text(as_text(documents * 5), encoding="utf-8")
    run(str(path), tmp_path / "out", heldout_fraction=0.3)
    splits = Manifest.load(str(tmp_path / "out")).splits
    assert splits["heldout"].documents % 5 == 0
    path.write_text(as_text(documents[:1] * 9), encoding="utf-8")
    run(str(path), tmp_path / "same", heldout_fraction=0.3)
    assert list(Manifest.load(str(tmp_path / "same")).splits) == ["train"]


def test_duplicates_and_poor_documents_are_counted(tmp_path):
    documents = [[f"Number {i} of the people. They said so."] for i in "abcdefghijklmnopqrst"]
    poor = [["-- 12 34 56 %% 99 ** 7 8 9 10 11"], ["the same line"] * 3, ["short"]]
    path = tmp_path / "text.txt"
    path.write_text(as_text(documents + poor + documents[3:10]), encoding="utf-8")
    figures = run(
        str(path), tmp_path / "out", drop_duplicates=True, drop_low_quality=True, min_words=2
    )
    expected = dict(documents=20, duplicates=7, low_quality=2, too_short=1, empty=0)
    assert {name: figures[name] for name in expected} == expected
    source = Manifest.load(str(tmp_path / "out")).source
    assert source["counts"]["duplicates"] == 7
    run(str(path), tmp_path / "all")
    assert Manifest.load(str(tmp_path / "all")).splits["train"].documents == 30


def test_text_that_spells_special_tokens_never_becomes_them(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("<sep> a <cls> b <eod> <pad><mask> <eop> </s> " * 40)
    figures = run(str(path), tmp_path / "out")
    assert figures["documents"] == 1
    import tensorflow as tf

    for name in Manifest.load(str(tmp_path / "out")).splits["train"].files:
        for record in tf.data.TFRecordDataset(str(tmp_path / "out" / name)).as_numpy_iterator():
            ids = tf.train.Example.FromString(record).features.feature["token_ids"]
            specials = [i for i in ids.int64_list.value if 0 < i < 9 and i != 7]
            assert specials == [4, 4, 3]


# Wrong input.


@pytest.mark.parametrize(
    "text, message",
    [
        (b"", "no text in"),
        (b"\n\n  \n\t\n", "no document remains"),
        (b"\x01\x0b", "no document remains"),
        ("日\x0b".encode(), "not enough text: 3 tokens"),
        (b"fine\nnot \xff fine\n", r"text.txt, line 2: expected UTF-8, got the byte 0xff"),
        (b"too short\n", r"not enough text: \d+ tokens in 1 documents.* 33 are needed"),
    ],
)
def test_bad_text(tmp_path, text, message):
    (tmp_path / "text.txt").write_bytes(text)
    with pytest.raises(DataError, match=message):
        run(str(tmp_path / "text.txt"), tmp_path / "out")
    assert not (tmp_path / "out" / "manifest.json").exists()


# Readers.


def read_all(path, **options):
    counts = Counts()
    documents, reported = [], []
    options = ReadOptions(**options)
    for shard in corpus.find_shards([str(path)], options):
        for batch in read_documents(shard, options, counts, reported.append):
            documents += batch
    return documents, counts, sum(reported)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("blank", ["", " ", " \t"])
def test_shards_of_any_size_hold_the_documents_of_the_file(tmp_path, monkeypatch, end, blank):
    documents = random_documents(random.Random(5), 23, most_lines=3)
    path = tmp_path / "text.txt"
    text = (end + blank + end).join(end.join(lines) for lines in documents)
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    for shard_bytes in (61, 499, 1 << 20):
        monkeypatch.setattr(corpus, "shard_bytes", lambda _, size=shard_bytes: size)
        for batch_bytes in (53, 1 << 20):
            monkeypatch.setattr(readers, "BATCH_BYTES", batch_bytes)
            found, counts, reported = read_all(path)
            assert found == documents
            assert counts["bytes"] == reported == path.stat().st_size
            assert counts["characters"] == sum(len(line) for lines in documents for line in lines)


def test_text_without_an_end_is_cut_and_nothing_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "MAX_DOCUMENT_BYTES", 256)
    monkeypatch.setattr(readers, "BATCH_BYTES", 64)
    monkeypatch.setattr(readers, "MAX_LINE_CHARS", 32)
    for separator in ("\n", " ", ""):
        text = separator.join(["wörter", "abc", "日本語"] * 300)
        (tmp_path / "text.txt").write_text(text, encoding="utf-8")
        for shard_bytes in (101, 1 << 20):
            monkeypatch.setattr(corpus, "shard_bytes", lambda _, size=shard_bytes: size)
            documents, counts, _ = read_all(tmp_path / "text.txt")
            assert counts["cut_documents"] > 5
            assert (separator != "") or counts["cut_lines"] > 5
            joined = "".join(line for lines in documents for line in lines)
            assert joined.replace(" ", "") == text.replace("\n", "").replace(" ", "")


COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: zstandard.compress(data[:99]) + zstandard.compress(data[99:]),
}


@pytest.mark.parametrize("ending", COMPRESS)
def test_compressed_files(tmp_path, ending):
    documents = random_documents(random.Random(5), 50)
    path = tmp_path / f"text.txt.{ending}"
    data = COMPRESS[ending](as_text(documents).encode())
    path.write_bytes(data)
    found, _, reported = read_all(path)
    assert found == documents
    assert reported == len(data)
    path.write_bytes(data[:-20])
    with pytest.raises(DataError, match=rf"text.txt.{ending}: expected a complete"):
        read_all(path)
    path.write_bytes(b"no such thing" * 9)
    with pytest.raises(DataError, match=rf"text.txt.{ending}: expected a"):
        read_all(path)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_documents_that_begin_with_a_line_of_a_form(tmp_path, monkeypatch, end):
    """WikiText's articles, whose sections are set off by blank lines."""
    rng = random.Random(5)
    documents = []
    for number, lines in enumerate(random_documents(rng, 29, most_lines=3)):
        documents.append([f"= Title {number} =", *lines[:1], "= = Section = =", *lines[1:]])
    text = end.join(
        " " + end + end.join(f" {line} {end} " for line in document) for document in documents
    )
    path = tmp_path / "wiki.train.tokens"
    path.write_bytes(text.encode())
    start = " = (?!=)"
    for shard_bytes in (61, 499, 1 << 20):
        monkeypatch.setattr(corpus, "shard_bytes", lambda _, size=shard_bytes: size)
        for batch_bytes in (301, 1 << 20):
            monkeypatch.setattr(readers, "BATCH_BYTES", batch_bytes)
            found, counts, _ = read_all(path, document_start=start)
            assert found == documents
            assert counts["bytes"] == path.stat().st_size
    assert len(read_all(path)[0]) > 2 * len(documents)
    for wrong in ("(", "(?i)a", r"\u0041", "a{99999999999}", "*"):
        with pytest.raises(DataError, match="document_start: expected a regular expression, got"):
            ReadOptions(document_start=wrong)


def test_wikiextractor(tmp_path, monkeypatch):
    documents = random_documents(random.Random(5), 50)
    text = "".join(
        f'<doc id="{i}" url="https://x/{i}" title="T">\n' + "\n\n".join(lines) + "\n\n</doc>\n"
        for i, lines in enumerate(documents)
    )
    (tmp_path / "wiki_00").write_text(text, encoding="utf-8")
    for shard_bytes in (301, 1 << 20):
        monkeypatch.setattr(corpus, "shard_bytes", lambda _, size=shard_bytes: size)
        assert read_all(tmp_path / "wiki_00")[0] == documents


def test_parquet(tmp_path, monkeypatch):
    import pyarrow
    import pyarrow.parquet as pq

    documents = random_documents(random.Random(5), 50)
    table = pyarrow.table({"text": ["\n".join(lines) for lines in documents] + [None]})
    pq.write_table(table, tmp_path / "text.parquet", row_group_size=7)
    monkeypatch.setattr(corpus, "shard_bytes", lambda _: 2000)
    assert len(corpus.find_shards([str(tmp_path / "text.parquet")], ReadOptions())) > 1
    found, counts, _ = read_all(tmp_path / "text.parquet")
    assert found == documents and counts["missing_texts"] == 1
    with pytest.raises(DataError, match="expected a column 'body', got text"):
        read_all(tmp_path / "text.parquet", text_field="body")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(DataError, match=r"bad.parquet: expected a Parquet file"):
        read_all(tmp_path / "bad.parquet")


def test_tfds(tmp_path, monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")
    import tensorflow as tf

    documents = random_documents(random.Random(5), 50)
    texts = ["\n".join(lines) for lines in documents]
    tfds.dataset_builders.store_as_tfds_dataset(
        name="stories",
        version="1.0.0",
        features=tfds.features.FeaturesDict({"text": tfds.features.Text()}),
        split_datasets={"train": tf.data.Dataset.from_tensor_slices({"text": texts})},
        data_dir=str(tmp_path / "tfds"),
    )
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "tfds"))
    monkeypatch.setattr(tfds.core.constants, "DATA_DIR", str(tmp_path / "tfds"))
    monkeypatch.setattr(corpus, "_EXAMPLES_PER_SHARD", 7)
    found, _, _ = read_all("tfds:stories:train")
    assert sorted(found) == sorted(documents)
    for split, size in (("train[:30%]", 15), ("train[-13:]", 13), ("train[7:20]+train[40:]", 23)):
        found, _, _ = read_all(f"tfds:stories:{split}")
        records = tfds.as_numpy(tfds.load("stories", split=split))
        wanted = [record["text"].decode().split("\n") for record in records]
        assert sorted(found) == sorted(wanted) and len(found) == size
    for name, message in (
        ("tfds:stories:test", "expected a split of stories that is on disk, one of train"),
        ("tfds:stories:train[:170%]", "got 'train.:170%.'"),
        ("tfds:stories:train:80", "got 'train:80'"),
        ("tfds:no_such_thing", "no such TFDS data set on disk"),
    ):
        with pytest.raises(DataError, match=message):
            read_all(name)
    with pytest.raises(DataError, match="expected a feature 'body', got text"):
        read_all("tfds:stories", text_field="body")


def test_draws_of_a_window_depend_on_the_window_alone():
    from data_prep.records.windows import window_draws

    whole = window_draws(7, 0, 3, 0, 50)
    np.testing.assert_array_equal(whole[20:31], window_draws(7, 0, 3, 20, 11))
    assert len(np.unique(whole)) == whole.size
    for other in (
        window_draws(8, 0, 3, 0, 50),
        window_draws(7, 1, 3, 0, 50),
        window_draws(7, 0, 4, 0, 50),
    ):
        assert not np.isin(whole, other).any()
