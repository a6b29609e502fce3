"""Products in bfloat16 in every verb that takes them: other numbers than in float32, and close."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tests.helpers.runs import losses_of
from tests.helpers.world import command

TYPES = ("float32", "bfloat16")


def losses(world, tmp_path, name):
    flags = {"config": world.config, "data": world.data, "output": tmp_path / name}
    settings = (f"training.products={name}", "num_steps=4", "warmup_steps=0")
    command("pretrain", *(f"--set={setting}" for setting in settings), **flags)
    return losses_of(tmp_path / name)


def evaluation(world, tmp_path, name):
    return [command("evaluate", model=world.pretrained, data=world.data, products=name)["loss"]]


def vectors(world, tmp_path, name):
    output = tmp_path / f"{name}.npy"
    command("embed", model=world.pretrained, input=world.text, output=output, products=name)
    return np.load(output)


def predictions(world, tmp_path, name):
    task, output = world.task("classification"), tmp_path / f"{name}.jsonl"
    command("predict", model=task.model, input=task.dev, output=output, products=name)
    rows = map(json.loads, pathlib.Path(output).read_text().splitlines())
    return [list(row["probabilities"].values()) for row in rows]


def served(world, tmp_path, name):
    """Vectors of an export, whose matrices are stored in the same type for both."""
    output = tmp_path / name
    command("export", model=world.pretrained, output=output, products=name, weights="bfloat16")
    signature = tf.saved_model.load(str(output / "1")).signatures["serving_default"]
    return signature(text=tf.constant(["One text.", "Another, longer text."]))["mean"]


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    "numbers_of",
    [
        losses,
        *(
            pytest.param(function, marks=pytest.mark.slow)
            for function in (served, evaluation, vectors, predictions)
        ),
    ],
)
def test_a_verb_multiplies_in_bfloat16(world, tmp_path, numbers_of):
    plain, rounded = (np.array(numbers_of(world, tmp_path, name)) for name in TYPES)
    assert not np.array_equal(plain, rounded)
    np.testing.assert_allclose(rounded, plain, rtol=0, atol=0.02 * np.abs(plain).max())
