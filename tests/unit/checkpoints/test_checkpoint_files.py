"""Which checkpoints are kept, which one counts, and what is in the memory's."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.checkpoints.checkpoint_files import (
    CheckpointWriter,
    best_heldout_loss,
    newest_checkpoint,
)
from official.xlnet.checkpoints.model_directory import restore_run
from official.xlnet.checkpoints.other_workers import parts_of_all_workers
from official.xlnet.checkpoints.xlnet_format import MEMORY, CheckpointFile
from official.xlnet.modeling.networks.recurrent_memory import Memory
from tests.helpers.compare import assert_refused


@pytest.fixture
def state():
    return tf.train.Checkpoint(weights=tf.Variable([2.0, 3.0]))


def steps_in(directory):
    return sorted(int(path.stem[5:]) for path in directory.glob("ckpt-*.json"))


def save_all(state, directory, losses, num_kept=2):
    writer = CheckpointWriter(state, str(directory), num_kept, is_chief=True)
    for step, loss in losses.items():
        state.weights.assign([step, -step])
        writer.save(step, heldout_loss=loss)
    writer.wait()


def test_the_newest_and_the_best_stay(state, tmp_path):
    save_all(state, tmp_path, {3: 5.0, 5: 2.0, 7: None, 11: 4.0, 13: None})
    assert steps_in(tmp_path) == [5, 11, 13]
    assert best_heldout_loss(str(tmp_path)) == 2.0
    assert sorted({path.stem for path in tmp_path.glob("ckpt-*.index")}) == [
        "ckpt-11",
        "ckpt-13",
        "ckpt-5",
    ]
    saved = newest_checkpoint(str(tmp_path))
    assert (saved.prefix, saved.record["step"]) == (str(tmp_path / "ckpt-13"), 13)
    assert tf.train.latest_checkpoint(str(tmp_path)) == saved.prefix
    other = tf.train.Checkpoint(weights=tf.Variable([0.0, 0.0]))
    other.restore(saved.prefix).assert_consumed()
    np.testing.assert_array_equal(other.weights, [13, -13])


DAMAGES = {
    "flip": ("data-00000-of-00001", lambda content: bytes([content[0] ^ 1]) + content[1:]),
    "cut": ("data-00000-of-00001", lambda content: content[:-1]),
    "empty": ("index", lambda _: b""),
    "record": ("json", lambda _: b'{"step"'),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_does_not_count(state, tmp_path, damage):
    save_all(state, tmp_path, {3: None, 5: None})
    name, change = DAMAGES[damage]
    file = tmp_path / f"ckpt-5.{name}"
    file.write_bytes(change(file.read_bytes()))
    assert newest_checkpoint(str(tmp_path)).record["step"] == 3
    (tmp_path / "ckpt-3.index").unlink()
    assert_refused(r"ckpt-5 is damaged.*ckpt-3 is damaged", newest_checkpoint, str(tmp_path))


def test_what_a_killed_run_left_is_removed(state, tmp_path):
    save_all(state, tmp_path, {3: None})
    state.write(str(tmp_path / "ckpt-5"))
    (tmp_path / "ckpt-7_temp").mkdir()
    (tmp_path / "ckpt-7_temp" / "part-00000").write_text("half")
    (tmp_path / "ckpt-9.json.tmp").write_text("half")
    (tmp_path / "ckpt-mine.txt").write_text("not ours")
    assert newest_checkpoint(str(tmp_path)).record["step"] == 3
    CheckpointWriter(state, str(tmp_path), 2, is_chief=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint",
        "ckpt-3.data-00000-of-00001",
        "ckpt-3.index",
        "ckpt-3.json",
        "ckpt-mine.txt",
    ]


def test_a_failure_in_the_background_is_raised(state, tmp_path, monkeypatch):
    writer = CheckpointWriter(state, str(tmp_path), 2, is_chief=True)
    monkeypatch.setattr(json, "dumps", lambda *_, **__: 1 / 0)
    writer.save(3)
    with pytest.raises(ZeroDivisionError):
        writer.save(5)


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
@pytest.mark.parametrize("rows", [3, 5, 7])
def test_rows_of_a_memory_in_other_batches(tmp_path, rows, dtype):
    """L 2, M 3, D 11: rows beyond the saved ones are zeros, those too many are dropped."""
    memory = Memory(2, 5, 3, 11, dtype)
    values = tf.cast(tf.random.stateless_normal([2, 5, 3, 11], [1, 2]), dtype)
    memory.scatter(values)
    path = tf.train.Checkpoint(memory=memory).save(str(tmp_path / "ckpt"))
    other = Memory(2, rows, 3, 11)
    tf.train.Checkpoint(memory=other).restore(path).assert_consumed()
    wanted = np.zeros([2, rows, 3, 11], np.float32)
    kept = min(rows, 5)
    wanted[:, :kept] = tf.cast(values, tf.float32)[:, :kept]
    np.testing.assert_array_equal(other.gather(), wanted)


@pytest.mark.parametrize("is_saved", [False, True])
def test_a_checkpoint_with_and_without_memory(tmp_path, is_saved):
    """Its size, by hand, and that the memory stays empty, and the rest is restored."""
    memory = Memory(2, 5, 3, 11, tf.bfloat16)
    assert memory.saved_bytes == 2 * 5 * 3 * 11 * 4
    memory.scatter(tf.fill([2, 5, 3, 11], 2.0))
    memory.is_saved = is_saved
    state = tf.train.Checkpoint(model=tf.Module(), optimizer=tf.Module())
    state.model.memory, state.model.weights = memory, tf.Variable(3.0)
    path = state.save(str(tmp_path / "ckpt"))
    assert (MEMORY in CheckpointFile(path).shapes) == is_saved
    state.model.memory, state.model.weights = Memory(2, 5, 3, 11), tf.Variable(0.0)
    restore_run(path, state)
    assert state.model.memory.is_saved == is_saved
    assert np.all(state.model.memory.gather() == (2.0 if is_saved else 0.0))
    assert float(state.model.weights) == 3.0


def test_other_workers_save_only_what_all_of_them_give(tmp_path, monkeypatch):
    """A value for each replica, in the order of saving; the weights are those of the first."""

    def variable(num_values, sync="AUTO"):
        synchronization = getattr(tf.VariableSynchronization, sync)
        aggregation = tf.VariableAggregation.SUM
        return tf.Variable(
            tf.zeros([num_values]), synchronization=synchronization, aggregation=aggregation
        )

    sums = [variable(size, "ON_READ") for size in (3, 2)]
    state = tf.train.Checkpoint(weights=variable(5000), metrics=sums, more=variable(7, "ON_WRITE"))
    parts = parts_of_all_workers(state)
    assert all(part is one for part, one in zip(parts.values(), sums, strict=True))
    sizes = []
    write = tf.train.Checkpoint.write

    def record(self, prefix):
        write(self, prefix)
        sizes.append(sum(path.stat().st_size for path in pathlib.Path(prefix).parent.iterdir()))

    monkeypatch.setattr(tf.train.Checkpoint, "write", record)
    for saved in (state, tf.train.Checkpoint(weights=variable(5000))):
        CheckpointWriter(saved, str(tmp_path / "model"), 1, is_chief=False).save(3)
    assert len(sizes) == 1 and sizes[0] < 5000  # Nothing is given by all in the second.
    assert not (tmp_path / "model").exists()
