"""Fine-tuning from a fine-tuned model: with its head if it fits, else with a word why not."""

import dataclasses

import pandas as pd
import pytest

from official import xlnet
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.key_marks import OF_HEAD
from official.xlnet.data.examples import TextExample
from official.xlnet.jobs.finetuning import task_configuration
from official.xlnet.testing.tasks import require_same
from official.xlnet.training.continued_head import take_head
from tests.helpers.task_corpora import KINDS
from tests.helpers.world import command

STILL = ("num_steps=1", "checkpoint_steps=1", "warmup_steps=0", "learning_rate=1e-30")
STILL += ("task.num_buckets=1", "training.batch_size=7")
FAST = ("classification",)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in FAST else pytest.mark.slow) for kind in KINDS]
)
def test_a_run_without_learning_is_the_model_that_it_began_with(world, kind, tmp_path):
    task = world.task(kind)
    require_same(continued(world, kind, task.model, tmp_path / "on"), task.predictions(), kind)
    before, after = (XLNetConfig.load(str(path)) for path in (task.model, tmp_path / "on"))
    for key in before.task.marked_keys(OF_HEAD):
        assert getattr(after.task, key) == getattr(before.task, key), key


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "form"),
    [
        *((kind, "hf") for kind in ("classification", "multi_label", "token_classification")),
        *(("regression", form) for form in ("hf", "tf1")),
    ],
)
def test_a_head_of_another_format_goes_on(world, kind, form, tmp_path):
    """As the folder says it: TF1 has no names of classes, and no summary but that of CLS."""
    task, there = world.task(kind), str(tmp_path / "there")
    xlnet.convert(task.model, there, form)
    expected, length = task.predictions(), 23
    if form == "tf1":
        length = 128  # As `predict` reads a folder that does not say it.
        texts = list(pd.read_csv(task.dev, sep="\t")[["a", "b", "c"]].itertuples(index=False))
        expected = xlnet.predict(there, [tuple(row) for row in texts])
    require_same(continued(world, kind, there, tmp_path / "on", length), expected, kind)


def continued(world, kind, model, output, length=23):
    """Predictions after a step from a model that changes nothing."""
    task = world.task(kind)
    settings = [*STILL, f"task.max_length={length}"]
    settings += ["query_length=7"] if kind == "question_answering" else []
    files = {"train": task.train, "dev": task.dev, "init_from": model, "output": output}
    command("finetune", f"--task={kind}", *(f"--set={setting}" for setting in settings), **files)
    return dataclasses.replace(task, model=output).predictions()


def reason(model, labels, task="classification", given=()):
    config = task_configuration(task, None, given, model)
    examples = [TextExample(str(n), ("a",), label) for n, label in enumerate(labels)]
    keys = {setting.partition("=")[0].rpartition(".")[2] for setting in given}
    return take_head(config, keys, model, examples), config.task


def test_a_head_that_does_not_fit_is_not_taken_and_the_reason_is_said(world):
    model, labels = world.task("classification").model, ["bad", "good"]
    names = XLNetConfig.load(model).task.labels
    assert set(names) >= {*labels}
    found, task = reason(model, labels)
    assert found is None and task.labels == names
    found, task = reason(model, [*labels, "new"])
    assert "'new'" in found and task.labels == ()
    assert "task.summary is 'attn'" in reason(model, labels, given=["task.summary=attn"])[0]
    found, _ = reason(model, [0.5, 2.0], "regression")
    assert "for the task classification" in found
    assert reason(world.pretrained, labels)[0] == ""


@pytest.mark.slow
def test_a_new_head_may_be_asked_for(world, tmp_path):
    task = world.task("classification")
    given = {"config": None, "overrides": list(STILL), "new_head": True}
    xlnet.finetune(task.model, task.train, task.dev, str(tmp_path), **given)
    found = dataclasses.replace(task, model=tmp_path).predictions()
    with pytest.raises(AssertionError, match="new head: expected"):
        require_same(found, task.predictions(), "new head")
