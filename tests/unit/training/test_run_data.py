"""The data of a pre-training run."""

import functools
import itertools
import random

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.api.pretrain import pretrain
from official.xlnet.checkpoints.checkpoint_files import SavedState, newest_checkpoint
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.lane_schedule import Position
from official.xlnet.data.pretraining_dataset import Records
from official.xlnet.runtime.history import read_history
from official.xlnet.training.run_data import RunData, rows_of
from tests.helpers.compare import assert_refused
from tests.helpers.corpora import as_text, random_documents, vocabulary_dir
from tests.helpers.world import command


def test_held_out_batches_are_an_epoch_again_and_again(world):
    """Without an end: of finite data, TensorFlow does not tell several workers how many rows."""
    config = XLNetConfig.load(world.config)
    config.training.evaluation_steps = 1
    records = Records(world.data, config)
    batches, number = RunData(config.training, records, tf.distribute.get_strategy()).heldout
    assert int(batches.cardinality()) == tf.data.INFINITE_CARDINALITY
    first, second = (
        [batch["window_id"].numpy() for batch in itertools.islice(batches, start, start + number)]
        for start in (0, number)
    )
    np.testing.assert_array_equal(first, second)
    assert np.unique(first).size == records.split("heldout").windows


# Several data sets with shares.


@pytest.fixture(scope="module")
def other(world, tmp_path_factory):
    """A data set of other text and fewer lanes, with the vocabulary and windows of the world's."""
    folder = tmp_path_factory.mktemp("other")
    (folder / "text.txt").write_text(as_text(random_documents(random.Random(5), 20)))
    flags = {"input": folder / "text.txt", "vocab": world.vocab, "config": world.config}
    settings = ("--set=num_lanes=4", "--num_workers=1")
    command("prepare", *settings, output=folder / "data", **flags)
    return str(folder / "data")


def test_rows_follow_the_shares():
    for shares, size, unit, expected in (
        ([3, 1], 16, 2, [12, 4]),
        ([1], 6, 2, [6]),
        ([1, 100], 8, 4, [4, 4]),
        ([5, 3, 2], 20, 1, [10, 6, 4]),
        ([1, 1, 1], 16, 2, [6, 6, 4]),
    ):
        assert rows_of(shares, size, unit) == expected
    assert_refused("at least 4, 2 rows for each of 2 data sets, got 2", rows_of, [1, 1], 2, 2)


def test_each_data_set_is_read_by_its_rows_alone(world, other):
    config = XLNetConfig.load(world.config)
    records = [Records(path, config) for path in (world.data, other)]
    data = RunData(config.training, records, tf.distribute.get_strategy(), [2, 1])
    data.go_to(0, None)
    first = records[0].split("train").windows
    alone = [iter(r.batches(n)) for r, n in zip(records, (4, 2), strict=True)]
    for step, batch in enumerate(itertools.islice(data.training(), 40), 1):
        one, two = map(next, alone)
        for name, value in batch.items():
            shift = first if name in ("window_id", "follows") else 0
            expected = np.concatenate(
                [one[name], two[name].numpy() + shift if shift else two[name]]
            )
            np.testing.assert_array_equal(value, expected)
        assert data.windows(step) == batch["window_id"].numpy().tolist()
    np.testing.assert_array_equal(data.batch(40)["token_ids"], batch["token_ids"])


@pytest.mark.slow
def test_rows_go_on_where_they_were_and_their_memory_if_they_are_as_many(world, other):
    config = XLNetConfig.load(world.config)
    records = [Records(path, config) for path in (world.data, other)]
    data = RunData(config.training, records, tf.distribute.get_strategy(), [2, 1])
    data.go_to(0, None)
    [batch] = itertools.islice(data.training(), 39, 40)
    resumed = RunData(config.training, records, tf.distribute.get_strategy(), [2, 1])
    resumed.go_to(23, SavedState("checkpoint", data.record(23)))
    for name, value in next(iter(itertools.islice(resumed.training(), 16, 17))).items():
        np.testing.assert_array_equal(value, batch[name])
    # Rows of another number stand elsewhere in the memory of the checkpoint.
    assert next(iter(resumed.training()))["context_length"].numpy().any()
    config.training.batch_size = 4
    resumed = RunData(config.training, records, tf.distribute.get_strategy(), [2, 1])
    resumed.go_to(23, SavedState("checkpoint", data.record(23)))
    first, second = (x["context_length"].numpy() for x in itertools.islice(resumed.training(), 2))
    assert not first.any() and second.any()


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_a_run_on_several_resumes_to_the_bit_and_with_the_same_shares_alone(
    world, other, tmp_path, capfd
):
    paths = [f"{world.data}:2", other]
    overrides = ["training.num_steps=2", "training.warmup_steps=0", "checkpoint_steps=1"]
    for steps, name in ((2, "whole"), (1, "parts"), (2, "parts")):
        pretrain(world.config, paths, str(tmp_path / name), overrides, steps=steps)
    assert f"{other}: 2 of 6 rows" in capfd.readouterr().err
    losses = [[x["loss"] for x in read_history(str(tmp_path / n))] for n in ("whole", "parts")]
    assert losses[0] == losses[1] and len(losses[0]) == 2
    for changed in ([f"{world.data}:1", other], paths[:1]):
        assert_refused(
            "records", pretrain, world.config, changed, str(tmp_path / "parts"), overrides
        )


def test_data_sets_of_another_vocabulary_are_refused(world, tmp_path):
    flags = {"input": world.text, "vocab": vocabulary_dir(199), "config": world.config}
    settings = ("--set=vocab_size=0", "--num_workers=1")
    command("prepare", *settings, output=tmp_path / "data", **flags)
    config = XLNetConfig.load(world.config)
    assert_refused(
        "vocabulary of the records",
        pretrain,
        config,
        [world.data, str(tmp_path / "data")],
        str(tmp_path / "model"),
    )


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_a_run_resumes_without_the_memory_that_its_checkpoint_lacks(world, tmp_path, capfd):
    """The second step has no row with a memory, and the third one has, as after a new start."""
    config = XLNetConfig.load(world.config, ["json_log=true", "checkpoint_steps=1"])
    config.training.warmup_steps = 0
    run = functools.partial(pretrain, config, world.data, str(tmp_path / "model"))
    config.training.checkpoint_memory = False
    run(steps=1)
    assert "checkpoints do not hold the recurrent memory, 0.0 GB" in capfd.readouterr().err
    config.training.checkpoint_memory = None
    run(steps=3)
    assert "all rows start with an empty one, which is full again" in capfd.readouterr().err
    saved = newest_checkpoint(str(tmp_path / "model"))
    lanes = Position.from_dict(saved.record["position"]).rows
    # The lane of each row remembers windows from the resumed step on, and has read one before.
    assert {lane.window - lane.memory_from for lane in lanes if lane} == {2}
    run(steps=4)
    assert "memory" not in capfd.readouterr().err
