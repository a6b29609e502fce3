"""Every task of the registry: complete by `check_task`, documented, its metrics by hand."""

import re

import numpy as np
import pytest

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import ConfigError
from official.xlnet.tasks.multiple_choice import ChoiceExample
from official.xlnet.tasks.task import Task, register_task
from official.xlnet.testing import check_task
from tests.helpers.documents import ROOT


@pytest.mark.parametrize("name", TASKS.names())
def test_a_task_is_complete(name):
    check_task(name)
    page = (ROOT / "docs/tasks.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{name}` \|", page, re.MULTILINE), "no row in docs/tasks.md"


def f1(true, predicted):
    return 2 * np.sum(true & predicted) / (np.sum(true) + np.sum(predicted))


def ranks(values):
    return np.argsort(np.argsort(values))


def test_metrics_by_hand():
    """Of random predictions; those of other tasks have tests of their own."""
    rng, number = np.random.default_rng(0), 37
    true, predicted = rng.random((2, number, 3)) < 0.4
    flags = true[:, 0], predicted[:, 0]
    scores = rng.random((2, number))
    is_equal = np.mean(flags[0] == flags[1])
    names = np.array(["a", "b", "c"])
    of_names = [f1(*pair) for pair in zip(true.T, predicted.T, strict=True)]
    correlation = np.corrcoef(*scores)[0, 1]
    cases = {
        "classification": (
            [TextExample("", (), names[int(x)]) for x in flags[0]],
            [{"label": names[int(x)]} for x in flags[1]],
            {
                "accuracy": is_equal,
                "f1": f1(*flags),
                "macro_f1": (f1(*flags) + f1(~flags[0], ~flags[1])) / 2,
                "matthews": np.corrcoef(*flags)[0, 1],
            },
        ),
        "multi_label": (
            [TextExample("", (), tuple(names[row])) for row in true],
            [{"probabilities": dict(zip(names, row, strict=True))} for row in predicted],
            {
                "micro_f1": f1(true, predicted),
                "macro_f1": np.mean(of_names),
                "exact_match": np.mean(np.all(true == predicted, axis=1)),
            },
        ),
        "regression": (
            [TextExample("", (), x) for x in scores[0]],
            [{"score": x} for x in scores[1]],
            {
                "pearson": correlation,
                "spearman": np.corrcoef(*map(ranks, scores))[0, 1],
                "mean_squared_error": np.mean((scores[0] - scores[1]) ** 2),
            },
        ),
        "multiple_choice": (
            [ChoiceExample("", (), (), int(x)) for x in flags[0]],
            [{"choice": int(x)} for x in flags[1]],
            {"accuracy": is_equal},
        ),
    }
    for name, (examples, predictions, expected) in cases.items():
        labels = list(names[: 2 if name == "classification" else 3])
        task = TASKS[name].__new__(TASKS[name])
        task.config = XLNetConfig.from_dict({"task": {"name": name, "labels": labels}})
        task.labels = task.config.task.labels
        assert task.evaluate(examples, predictions) == pytest.approx(expected), name


def test_a_misspelt_metric_is_refused_when_the_task_registers():
    class Mine(Task):
        metric, metrics = "acuracy", ("accuracy", "loss")

    with pytest.raises(
        ConfigError, match="metric of the task 'mine': expected one of accuracy, got"
    ):
        register_task("mine")(Mine)
    assert "mine" not in TASKS

    class Other(Mine):
        def evaluate(self, examples, predictions):
            return {"acuracy": 1.0}

    register_task("other")(Other)  # It declares no metrics for its own `evaluate`.
    del TASKS["other"]
