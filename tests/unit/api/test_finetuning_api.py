"""Fine-tuning, evaluation and prediction from paths and plain rows; baselines beside the result."""

import dataclasses
import json
import pathlib
import random
import shutil
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from data_prep.tasks.task_data import read_task
from official import xlnet
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.inference.task_prediction import load_task
from official.xlnet.jobs.baselines import add_baselines
from official.xlnet.jobs.finetuning import task_configuration
from official.xlnet.training.finetuning import saved_configuration
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.package.of_projects import entries, rows
from tests.helpers.task_corpora import task_file
from tests.helpers.world import command

SHORT = ["num_steps=3", "checkpoint_steps=3", "warmup_steps=0", "learning_rate=0.01"]
SHORT += ["batch_size=7", "task.max_length=23", "task.num_buckets=1"]
SHORT += ["model.dropout=0", "model.dropatt=0"]
TINY = ["num_layers=1", "d_model=8", "num_heads=2", "d_inner=8", "mem_len=0"]


def rows_of(path, *columns):
    return list(pd.read_csv(path, sep="\t")[[*columns]].itertuples(index=False, name=None))


def test_predictions(world):
    task = world.task("classification")
    texts = [text for (text,) in rows_of(task.dev, "text")]
    predictor = xlnet.Predictor(task.model)
    found = predictor([*texts, ""])
    assert [row["id"] for row in found] == [str(n) for n in range(1, len(texts) + 2)]
    for row, expected in zip(found, task.predictions(), strict=False):
        assert row["probabilities"] == pytest.approx(expected["probabilities"], abs=1e-5)
    assert predictor([]) == [] and predictor("")["label"] == found[-1]["label"]
    with pytest.raises(DataError, match="inputs, row 2: expected text in 'text', got None"):
        predictor(["now", None])
    with pytest.raises(DataError, match=r"expected 1 text\(s\) \(text\), got 2"):
        predictor([("now", "then")])


def scores(model, texts):
    return np.array([prediction["score"] for prediction in xlnet.predict(model, texts)])


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (1e7, -1e9), (0.003, 5.0)])
def test_rows_give_the_model_of_their_file_and_answers_in_the_units_of_their_labels(
    world, scale, offset, tmp_path
):
    task, columns = world.task("regression"), ("a", "b", "c", "label")
    train, dev = (
        [(*x, y * scale + offset) for *x, y in rows_of(path, *columns)]
        for path in (task.train, task.dev)
    )
    texts = [tuple(row) for *row, _ in dev]
    arguments = {"task": "regression", "overrides": SHORT}
    found = xlnet.finetune(world.pretrained, train, dev, f"{tmp_path}/model", **arguments)
    expected = scores(task.model, texts) * scale + offset
    tolerance = abs(scale) * 2e-3 + abs(offset) * 2e-7
    np.testing.assert_allclose(scores(f"{tmp_path}/model", texts), expected, atol=tolerance)
    metrics = task.json("metrics.json")
    assert found["pearson"] == pytest.approx(metrics["pearson"], abs=5e-3)
    assert found["loss"] == pytest.approx(metrics["loss"], rel=0.02)
    squared_error = metrics["mean_squared_error"] * scale**2
    assert found["mean_squared_error"] == pytest.approx(squared_error, rel=0.02)
    again = xlnet.evaluate(f"{tmp_path}/model", dev)
    assert again["pearson"] == pytest.approx(found["pearson"])


@pytest.mark.slow
@pytest.mark.parametrize("several", [{}, {"num_runs": 2}, {"search": 2}], ids=str)
def test_other_inputs_than_those_of_the_run_are_refused(world, several, tmp_path):
    """The same command means the same input; nothing is trained, or told, for another one."""
    files = world.files("classification")
    train, dev = (rows_of(path, "text", "label")[:20] for path in files.values())
    inputs, settings = {"model": world.pretrained, "train": train, "dev": dev}, list(SHORT)

    def tune(**changes):
        return xlnet.finetune(
            **(inputs | changes), output=f"{tmp_path}/model", overrides=settings, **several
        )

    first = tune()
    encoder = xlnet.load_encoder(world.pretrained)
    encoder.trainable_variables[0].assign_add(tf.ones_like(encoder.trainable_variables[0]))
    xlnet.save_pretrained(encoder, f"{tmp_path}/other", f"{world.vocab}/spiece.model")
    other_label = {"good": "bad", "bad": "good"}[train[-1][1]]
    for changes, what in (
        ({"train": [*train[:-1], (train[-1][0], other_label)]}, "training examples"),
        ({"train": [*train, ("now", "good")]}, "training examples"),
        ({"train": train[::-1]}, "training examples"),
        ({"dev": dev[1:]}, "validation examples"),
        ({"model": f"{tmp_path}/other"}, "initial weights"),
    ):
        with pytest.raises(ConfigError, match=f"expected the {what} .*; choose another output"):
            tune(**changes)
    settings.append("weight_decay=0.5")
    with pytest.raises(ConfigError, match=r"weight_decay|expected the configuration"):
        tune()
    settings.pop()
    assert tune() == first


def test_the_model_says_its_objective(tmp_path):
    tree = {
        "model": {"attention_type": "uni", "mem_len": 0},
        "data": {"bidirectional": False},
        "objective": {"kind": "causal"},
    }
    xlnet.XLNetConfig.from_dict(tree).save(str(tmp_path))
    config = task_configuration("classification", None, [], str(tmp_path))
    assert config.objective.kind == "causal"  # What `task.lm_weight` reads follows from it.
    assert config.task.max_length == 128


ROWS = [("now", "good"), ("then", "bad")]
LARGE = [(text, 1e9 + n) for n, (text, _) in enumerate(ROWS)]


@pytest.mark.parametrize(
    ("train", "task", "error", "message"),
    [
        (ROWS, "classificatoin", DataError, "task 'classificatoin': .* mean 'classification'"),
        (("now", "good"), "classification", TypeError, "train: expected a list"),
        (LARGE, "regression", DataError, r"standard deviation is at least 1e\+04.* subtract"),
    ],
)
def test_wrong_arguments_are_named(world, train, task, error, message, tmp_path):
    with pytest.raises(error, match=message):
        xlnet.finetune(world.pretrained, train, train, f"{tmp_path}/x", task, overrides=SHORT)
    with pytest.raises(ConfigError, match=r"group_column: expected a column of a training table"):
        settings = {"task": "classification", "overrides": [*SHORT, "task.group_column=patientID"]}
        xlnet.finetune(world.pretrained, ROWS, ROWS, f"{tmp_path}/x", **settings)
    with pytest.raises(ConfigError, match="expected a fine-tuned model, got one without a task"):
        xlnet.predict(world.pretrained, ["now"])


@pytest.mark.slow
def test_further_training_files_count_by_their_weights(world, tmp_path):
    """A step on two files moves the weights as one on the examples with their weights does.

    Files are given to the command or, with another weight, to the function.
    """
    own, more = world.files("question_answering").values()
    settings = [*SHORT, "num_steps=1", "checkpoint_steps=1", "batch_size=30", "task.query_length=7"]
    arguments = {"task": "squad", "overrides": settings}
    task = task_configuration("squad", None, settings, world.pretrained).task
    examples = read_task(own, task)[0]
    for example in read_task(more, task)[0]:  # Ids of one list differ, those of two files need not.
        examples.append(dataclasses.replace(example, id=f"more {example.id}", weight=0.25))

    def weights(name):
        return load_task(str(tmp_path / name))[0].head.get_weights()

    start, output = world.pretrained, f"{tmp_path}/examples"
    assert xlnet.finetune(start, examples, own, output, **arguments)["train_examples"] == 30
    output = f"{tmp_path}/unweighted"
    xlnet.finetune(start, own, own, output, extra_train={more: 1.0}, **arguments)
    flags = {"task": "squad", "init_from": start, "train": own, "dev": own}
    sets = [f"--set={setting}" for setting in settings]
    output, extra = f"{tmp_path}/command", f"{more}=0.25"
    command("finetune", *sets, **flags, output=output, extra_train=extra)
    found, expected = weights("command"), weights("examples")
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, wanted, atol=1e-6)
    other = zip(weights("unweighted"), expected, strict=True)
    assert max(np.abs(a - b).max() for a, b in other) > 1e-5
    with pytest.raises(ConfigError, match=r"a task whose examples have weights .*, got 'class"):
        xlnet.finetune(start, [("a", "b")], [("a", "b")], "x", extra_train={more: 1.0})


# Modules whose `run_finetuning` is called, and the arguments with which they do.
CALLERS_OF_PROJECTS = entries("CALLERS_OF_FINE_TUNING")
CALLERS = {"training.finetuning": {}} | CALLERS_OF_PROJECTS


@pytest.mark.parametrize(
    "caller",
    [
        pytest.param(caller, marks=pytest.mark.slow) if caller in CALLERS_OF_PROJECTS else caller
        for caller in CALLERS
    ],
)
def test_further_training_files_are_not_evaluated_on(caller, tmp_path):
    own, more = (
        task_file("question_answering", f"{tmp_path}/{name}.json", random.Random(name), number)
        for name, number in (("own", 12), ("more", 17))
    )
    settings = {"task": "squad", "vocab": f"{vocabulary_dir()}/spiece.model", "set": SHORT}
    settings |= CALLERS[caller]
    begun = mock.Mock(side_effect=InterruptedError)
    with (
        mock.patch(f"official.xlnet.{caller}.run_finetuning", begun),
        pytest.raises(InterruptedError),
    ):
        xlnet.finetune(None, own, None, f"{tmp_path}/x", extra_train={more: 0.5}, **settings)
    train, dev = ([x.weight for x in examples] for examples in begun.call_args.args[1:3])
    assert (train.count(1.0) + len(dev), train.count(0.5), {*dev}) == (12, 17, {1.0})


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("question_answering", marks=pytest.mark.slow),
        *rows("KINDS_WITH_BASELINES"),
    ],
)
def test_baselines_are_shown_and_added_to_the_metrics(kind, world, tmp_path, capfd):
    task = world.task(kind)
    for name in ("config.yaml", "spiece.model", "metrics.json"):
        shutil.copy(f"{task.model}/{name}", tmp_path)
    model_dir, settings = str(tmp_path), load_task(task.model)[1].config.task
    examples = [read_task(path, settings)[0] for path in (task.train, task.dev)]
    found = add_baselines(model_dir, {"accuracy": 0.25, "f1": 0.25}, *examples)
    saved = json.loads(pathlib.Path(tmp_path, "metrics.json").read_text())
    assert saved == {**task.json("metrics.json"), "baselines": found}
    said = capfd.readouterr().err
    if kind == "question_answering":
        assert found is None
        assert "model 0.2500 (no bag of words to compare with in question_answering)" in said
        return
    linear = found["bag_of_words"]["accuracy"]
    assert linear > 0.8
    assert f"accuracy: model 0.2500, bag of words {linear:.4f}, majority class " in said
    assert said.endswith("; the model is behind the bag of words\n")
    add_baselines(model_dir, {"accuracy": 1.0}, *examples)
    assert "behind" not in capfd.readouterr().err


@pytest.mark.slow
def test_whole_numbers_as_labels_are_predicted_as_whole_numbers(world, tmp_path):
    """Whatever the labels of dev are; reports keep the names of classes."""
    train, dev = (
        [(text, int(label == "good")) for text, label in rows_of(path, "text", "label")]
        for path in world.files("classification").values()
    )
    named, output = [(text, str(label)) for text, label in dev], f"{tmp_path}/model"
    metrics = xlnet.finetune(world.pretrained, train, named, output, overrides=SHORT)
    found = xlnet.predict(output, [text for text, _ in dev])
    right = [row["label"] == label for row, (_, label) in zip(found, dev, strict=True)]
    assert np.mean(right) == pytest.approx(metrics["accuracy"])
    assert all(row["probabilities"][row["label"]] >= 0.5 for row in found)
    written = pathlib.Path(output, "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["label"] for line in written} <= {"0", "1"}


def test_a_run_that_has_no_checkpoint_yet_begins_anew(tmp_path):
    XLNetConfig().save(str(tmp_path))
    assert saved_configuration(str(tmp_path)) is None
