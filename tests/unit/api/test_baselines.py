"""Baselines beside the result of a model directory."""

import json
import random
import shutil

import pytest

from official.xlnet.api.baselines import add_baselines
from official.xlnet.data.examples import TextExample
from official.xlnet.tasks.question_answering.examples import QuestionExample
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.task_corpora import labelled, task_config


def directory_of(path, **task):
    """A model directory as far as baselines read it: all but the weights."""
    task_config(**task).save(str(path))
    shutil.copy(f"{vocabulary_dir()}/spiece.model", path / "spiece.model")
    (path / "metrics.json").write_text(json.dumps({"accuracy": 0.25, "steps": 7}))
    return str(path)


@pytest.fixture
def examples():
    rows = labelled(random.Random(0), 171)
    return [TextExample(str(n), (text,), label) for n, (label, text) in enumerate(rows)]


def test_they_are_shown_and_added_to_the_metrics(tmp_path, examples, capfd):
    model_dir = directory_of(tmp_path, name="classification", labels=("bad", "good"))
    found = add_baselines(model_dir, {"accuracy": 0.25}, examples[:130], examples[130:])
    linear = found["bag_of_words"]["accuracy"]
    assert linear > 0.8
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"accuracy: model 0.2500, bag of words {linear:.4f}, majority class or")
    assert line.endswith("; the model is behind the bag of words")
    saved = json.loads((tmp_path / "metrics.json").read_text())
    assert saved == {"accuracy": 0.25, "steps": 7, "baselines": found}

    add_baselines(model_dir, {"accuracy": 1.0}, examples[:130], examples[130:])
    assert "behind" not in capfd.readouterr().err


def test_a_task_without_baselines_says_so(tmp_path, capfd):
    model_dir = directory_of(tmp_path, name="question_answering")
    questions = [QuestionExample("1", "who", "the time", (("time", 4),))]
    assert add_baselines(model_dir, {"f1": 0.5, "exact": 0.25}, questions, questions) is None
    line = capfd.readouterr().err
    assert "model 0.5" in line and "no bag of words to compare with in question_answering" in line
    assert json.loads((tmp_path / "metrics.json").read_text())["baselines"] is None
