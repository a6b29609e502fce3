"""A lane is read from any of its windows on, without what is before it."""

import itertools
import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.data.random_records import write_data_set
from official.xlnet.data.lane_schedule import LanePosition, Position
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


def read_from(path, window, windows_per_lane, compression=""):
    """The records of a single lane from a window on."""
    begun = [LanePosition(3, window, 0)]
    reader = reading.LaneReader([str(path)], windows_per_lane, compression, begun)
    return reader.read(np.int64(3), np.int64(window))


def test_a_lane_may_have_more_bytes_than_an_int32_holds(tmp_path):
    path = tmp_path / "lane.tfrecord"
    write_records(path, MANY, first_id=0)
    dataset = tf.data.TFRecordDataset(str(path)).skip(11).take(1)
    (expected,) = dataset.as_numpy_iterator()
    os.truncate(path, 1 << 32)  # A sparse file.
    assert list(read_from(path, 11, 1 << 22).take(1).as_numpy_iterator()) == [expected]


def test_records_are_read_from_a_window_on(tmp_path, monkeypatch):
    path = tmp_path / "lane.tfrecord"
    write_records(path, 83, first_id=0)
    expected = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    for read_bytes in (16, 200, 1 << 16):  # Less than a record, and more than all.
        monkeypatch.setattr(reading, "_READ_BYTES", read_bytes)
        for window in (0, 1, 11, 82):
            assert list(read_from(path, window, 83).as_numpy_iterator()) == expected[window:]


def test_a_resumed_data_set_may_be_read_on_another_host(tmp_path):
    """It consists of TensorFlow's own operations: a function of Python is known here only."""
    write_data_set(str(tmp_path), T, REUSE, 4, 9)
    for position in (None, Position.start(4).resized(2)):
        batch_size = len(position.rows) if position else 4
        dataset = pretraining_dataset(str(tmp_path), batch_size, start_step=5, position=position)
        variant = dataset._variant_tensor
        graph = tf.compat.v1.GraphDef.FromString(
            tf.raw_ops.DatasetToGraphV2(input_dataset=variant).numpy()
        )
        nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
        operations = {node.op for node in nodes}
        assert "TFRecordDatasetV2" in operations
        assert not [op for op in operations if "PyFunc" in op]


def test_tf_data_service_reads_a_resumed_data_set(tmp_path):
    write_data_set(str(tmp_path), T, REUSE, 4, 9)
    dataset = pretraining_dataset(str(tmp_path), 4, start_step=5)
    service = tf.data.experimental.service
    dispatcher = service.DispatchServer()
    address = dispatcher.target.partition("://")[2]
    worker = service.WorkerServer(service.WorkerConfig(dispatcher_address=address))
    served = dataset.apply(service.distribute(service.ShardingPolicy.OFF, dispatcher.target))
    for found, expected in zip(served.take(9), dataset, strict=False):
        assert found["window_id"].numpy().tolist() == expected["window_id"].numpy().tolist()
    del worker


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
    assert list(read_from(path, 5, 9, "GZIP").as_numpy_iterator()) == records[5:]
