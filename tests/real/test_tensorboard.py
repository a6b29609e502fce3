"""TensorBoard's own event reader reads our logs: their scalars are those of our files."""

import json
import pathlib

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util

from official.xlnet.runtime.history import read_history


def scalars(model_dir):
    """{name: {step: value}} as the dashboard loads them."""
    accumulator = EventAccumulator(f"{model_dir}/logs").Reload()
    tags = accumulator.Tags()
    assert not tags["scalars"] and not tags["graph"]  # Those of TensorFlow 1.
    return {
        tag: {
            event.step: tensor_util.make_ndarray(event.tensor_proto).item()
            for event in accumulator.Tensors(tag)
        }
        for tag in tags["tensors"]
        if accumulator.SummaryMetadata(tag).plugin_data.plugin_name == "scalars"
    }


def test_a_pretraining_run_is_shown_with_the_losses_of_its_history(world):
    shown = scalars(world.pretrained)
    history = {line["step"]: line["loss"] for line in read_history(world.pretrained)}
    assert sorted(shown["loss"]) == [10, 20, 30, 40, 50, 60]
    assert shown["loss"] == pytest.approx({step: history[step] for step in shown["loss"]})
    assert sorted(shown["heldout_loss"]) == [20, 40, 60]
    lines = pathlib.Path(world.pretrained, "logs/scalars.jsonl").read_text().splitlines()
    for line in map(json.loads, lines):
        step = line.pop("step")
        assert {tag: shown[tag][step] for tag in line} == pytest.approx(line)


@pytest.mark.parametrize(("kind", "steps"), [("classification", 60), ("regression", 3)])
def test_a_fine_tuning_is_shown_with_its_losses_and_metrics(world, kind, steps):
    task = world.task(kind)
    shown = scalars(task.model)
    history = {line["step"]: line["loss"] for line in read_history(task.model)}
    assert shown["loss"] == pytest.approx({step: history[step] for step in shown["loss"]})
    assert [*shown["loss"]] == [*range(10, steps, 10), steps] and "learning_rate" in shown
