"""What a function of ours leaves behind in the process that calls it."""

import pickle
import random

import numpy as np
import pytest

from official import xlnet
from official.xlnet.runtime.progress import loading_tensorflow
from official.xlnet.training.pretraining_loop import PretrainingLoop
from tests.helpers.compare import assert_refused


@pytest.mark.usefixtures("eager")
def test_training_and_evaluation_keep_the_random_state(world, tmp_path):
    def state():
        return pickle.dumps([random.getstate(), np.random.get_state()])

    task, before = world.task("classification"), state()
    xlnet.evaluate(task.model, task.dev)
    xlnet.pretrain(world.config, world.data, tmp_path / "run", steps=1)
    assert state() == before


@pytest.mark.usefixtures("eager")
def test_pretraining_ends_when_its_directory_was_moved_and_made_anew(world, tmp_path, monkeypatch):
    output, moved = tmp_path / "run", tmp_path / "moved"
    save = PretrainingLoop._save

    def after_the_move(loop):
        output.rename(moved)
        output.mkdir()
        save(loop)

    monkeypatch.setattr(PretrainingLoop, "_save", after_the_move)
    assert_refused(
        r"run: expected the directory .*, got another one",
        xlnet.pretrain,
        world.config,
        world.data,
        output,
        ["training.checkpoint_steps=2"],
        steps=3,
    )
    assert not output.exists() and (moved / "config.yaml").exists()


def test_loading_tensorflow_draws_nothing_from_the_random_state():
    """Its import draws from Python's, in the body of a command's function."""
    before = random.getstate()
    with loading_tensorflow():
        random.random()
    assert random.getstate() == before
