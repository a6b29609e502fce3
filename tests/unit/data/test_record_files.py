"""A lane is read from any of its windows on, without what is before it."""

import itertools
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.data.random_records import write_data_set
from official.xlnet.data.pretraining_dataset import pretraining_dataset
from official.xlnet.data.record_files import lane_from as reading
from official.xlnet.data.record_files.framing import framed
from tests.helpers.wrong.faulty_records import REUSE, T

FIRST_ID, FEW, MANY = 7000, 500, 4000


def write_records(path, num_windows, first_id=FIRST_ID):
    """Records of one to three bytes a token, in long runs; returns where they begin."""
    rng = np.random.default_rng(num_windows)
    records = []
    for i in range(num_windows):
        example = tf.train.Example()
        tokens = rng.integers(0, (100, 9_000, 1 << 20)[i * 5 // num_windows % 3], 23)
        example.features.feature["token_ids"].int64_list.value.extend(tokens)
        example.features.feature["window_id"].int64_list.value.append(first_id + i)
        records.append(example.SerializeToString())
    path.write_bytes(framed(records))
    assert list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator()) == records
    return np.cumsum([0] + [len(framed([record])) for record in records[:-1]])


def read_since_boot():
    """Bytes that this process has read."""
    (line,) = [x for x in pathlib.Path("/proc/self/io").read_text().split("\n") if "rchar" in x]
    return int(line.split()[1])


@pytest.mark.parametrize("read_bytes", [512, reading._READ_BYTES])
def test_the_place_of_a_window_is_found_by_a_few_reads(tmp_path, monkeypatch, read_bytes):
    monkeypatch.setattr(reading, "_READ_BYTES", read_bytes)
    path, most = tmp_path / "lane.tfrecord", {}
    for num_windows in (FEW, MANY):
        positions = write_records(path, num_windows)
        windows = np.arange(1, num_windows, num_windows // 83)
        before = read_since_boot()
        found = [reading.window_position(path, FIRST_ID, i, num_windows) for i in windows]
        most[num_windows] = (read_since_boot() - before) / len(windows)
        assert found == positions[windows].tolist()
    # At 512 bytes a read, an eighth more of the file would be 60 kB.
    assert most[MANY] <= most[FEW] + 8 * max(read_bytes, 1 << 13)


def test_a_lane_may_have_more_bytes_than_an_int32_holds(tmp_path):
    path = tmp_path / "lane.tfrecord"
    write_records(path, MANY)
    dataset = tf.data.TFRecordDataset(str(path)).skip(11).take(1)
    (expected,) = dataset.as_numpy_iterator()
    os.truncate(path, 1 << 32)  # A sparse file.

    def from_window(window):
        return reading.lane_from(str(path), FIRST_ID, window, 1 << 22, "").take(1)

    windows = tf.data.Dataset.from_tensors(tf.constant(11, tf.int64))
    assert list(windows.flat_map(from_window).as_numpy_iterator()) == [expected]


def test_records_are_read_on_in_parts(tmp_path, monkeypatch):
    path = tmp_path / "lane.tfrecord"
    positions = write_records(path, 83)
    expected = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    for read_bytes in (16, 200, 1 << 16):  # Less than a record, and more than all.
        monkeypatch.setattr(reading, "_READ_BYTES", read_bytes)
        rest = reading._from_position(tf.constant(str(path)), tf.constant(positions[11]))
        assert list(rest.as_numpy_iterator()) == expected[11:]


def test_other_windows_are_not_taken_for_it(tmp_path):
    """Where a file is not as its manifest says, TensorFlow reads it from the start."""
    path = tmp_path / "lane.tfrecord"
    write_records(path, FEW)
    assert reading.window_position(path, FIRST_ID + 7, 3, FEW) == 0
    assert reading.window_position(path, FIRST_ID, FEW, FEW) == 0
    path.write_bytes(path.read_bytes()[:-9] + b"no record")
    assert reading.window_position(path, FIRST_ID, FEW - 1, FEW) == 0
    path.write_bytes(bytes(range(256)) * 997)
    assert reading.window_position(path, FIRST_ID, 3, FEW) == 0
    assert reading.window_position(tmp_path / "none", FIRST_ID, 3, FEW) == 0


def test_a_resumed_run_reads_as_little_far_in_an_epoch_as_at_its_start(tmp_path, monkeypatch):
    """Bytes to the first batch."""
    monkeypatch.setattr(reading, "_READ_BYTES", 1 << 12)
    path, num_windows = str(tmp_path), 1500
    write_data_set(path, T, REUSE, 2, num_windows)
    for step in (31, 1490):
        dataset = pretraining_dataset(path, 2, start_step=step)
        before = read_since_boot()
        (batch,) = itertools.islice(dataset.as_numpy_iterator(), 1)
        assert read_since_boot() - before <= 50_000
        assert batch["window_id"].tolist() == [step, num_windows + step]
    assert os.path.getsize(f"{path}/train-00000-of-00002.tfrecord") > 250_000


def test_compressed_lanes_resume(tmp_path):
    path = tmp_path / "lane.gz"
    records = [str(i).encode() for i in range(9)]
    with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
        for record in records:
            writer.write(record)
    arguments = [tf.constant(x, tf.int64) for x in (0, 5)]
    rest = reading.lane_from(tf.constant(str(path)), *arguments, 9, "GZIP")
    assert list(rest.as_numpy_iterator()) == records[5:]
