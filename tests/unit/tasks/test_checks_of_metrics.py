"""Metrics that are not what their names say, which `check_task` finds; and the order of classes."""

import collections
import types

import pytest
from sklearn.metrics import cohen_kappa_score

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import FILE_READERS, HEADS, TASKS
from official.xlnet.data.examples import TextExample
from official.xlnet.data.reading import register_reader
from official.xlnet.errors import DataError
from official.xlnet.modeling.heads.base import register_head
from official.xlnet.tasks.labels import complete_labels
from official.xlnet.tasks.task import Task, complete_task
from official.xlnet.testing import check_task
from official.xlnet.testing.metrics import check_metrics, require_oracles

GRADES = ("low", "medium", "high", "highest")
ROWS = [TextExample(f"{grade} {n}", ("a",), grade) for grade in GRADES for n in range(3)]
PREDICTIONS = [{"label": row.label} for row in ROWS]


def kappa(labels, weights):
    """Cohen's kappa of classes in this order."""

    def value(examples, predictions):
        names = [example.label for example in examples], [p["label"] for p in predictions]
        places = [[labels.index(name) for name in of_rows] for of_rows in names]
        return float(cohen_kappa_score(*places, weights=weights))

    return value


class Graded(Task):
    """Grades of texts."""

    metric, metrics = "quadratic_kappa", ("quadratic_kappa",)
    has_ordered_classes = True
    weights = "quadratic"

    @classmethod
    def complete_settings(cls, config, examples):
        config.task.labels = complete_labels(config, {example.label for example in examples})

    def evaluate(self, examples, predictions):
        value = kappa(self.config.task.labels, self.weights)
        return {"quadratic_kappa": value(examples, predictions)}


class WithoutWeights(Graded):
    weights = None


class WithoutOrder(Graded):
    has_ordered_classes = False


ORACLES = {"quadratic_kappa": kappa(GRADES, "quadratic")}


def check(task_class, oracles):
    config = XLNetConfig.from_dict({"task": {"name": "classification", "labels": GRADES}})
    task = task_class(config, types.SimpleNamespace(counts=collections.Counter()))
    others = [{"label": "medium"}] * len(ROWS)
    oracles = require_oracles(task_class, "graded", oracles)
    check_metrics(task, "graded", oracles, ROWS, [PREDICTIONS, others])


def test_a_metric_that_is_what_its_name_says_passes():
    check(Graded, ORACLES)


def test_a_kappa_without_its_weights_is_found():
    with pytest.raises(AssertionError, match=r"quadratic_kappa of random labels: expected .*, got"):
        check(WithoutWeights, ORACLES)


def test_a_metric_of_ordered_classes_without_their_order_is_found():
    expected = "quadratic_kappa depends on the order of the classes: set has_ordered_classes = True"
    with pytest.raises(AssertionError, match=f"{expected} in WithoutOrder"):
        check(WithoutOrder, ORACLES)


@pytest.mark.parametrize("oracles", [None, {}])
def test_a_metric_without_an_oracle_is_told_what_to_write(oracles):
    expected = r"write check_task\('graded', oracles=\{'quadratic_kappa': FUNCTION\}\)"
    with pytest.raises(AssertionError, match=expected):
        check(Graded, oracles)


def test_an_oracle_of_no_metric_is_refused():
    with pytest.raises(AssertionError, match="oracles of quadratic_kappa, got one of 'kappa'"):
        check(Graded, ORACLES | {"kappa": kappa(GRADES, None)})


def test_check_task_asks_for_oracles_before_it_trains(monkeypatch):
    monkeypatch.setitem(TASKS, "graded", Graded)
    with pytest.raises(AssertionError, match="expected an oracle of the metric 'quadratic_kappa'"):
        check_task("graded")
    assert require_oracles(TASKS["classification"], "classification", None) == {}


def config_of(labels=()):
    return XLNetConfig.from_dict({"task": {"name": "classification", "labels": labels}})


def test_words_that_are_ordered_classes_need_their_order():
    expected = (
        r"training data: expected the order of the classes, as task\.labels=\[LOWEST,…,HIGHEST\] "
        r"\(only numbers have one\), got high, highest, low, medium"
    )
    with pytest.raises(DataError, match=expected):
        complete_task(Graded, config_of(), ROWS)
    config = config_of(GRADES)
    complete_task(Graded, config, ROWS)
    assert config.task.labels == GRADES
    config = config_of()
    complete_task(WithoutOrder, config, ROWS)
    assert config.task.labels == ("high", "highest", "low", "medium")


def test_numbers_that_are_ordered_classes_are_in_their_order():
    config = config_of()
    rows = [TextExample(label, ("a",), label) for label in ("10", "9.5", "1e1", "-1", "2")]
    with pytest.raises(DataError, match="labels that differ in more"):  # Twice the same number.
        complete_task(Graded, config, rows)
    complete_task(Graded, config, [row for row in rows if row.label != "1e1"])
    assert config.task.labels == ("-1", "2", "9.5", "10")


def test_a_task_reads_as_another_task_does(monkeypatch):
    """By its name in the registries, as the architecture asks of tasks in the core, too."""
    for registry in (FILE_READERS, HEADS):
        monkeypatch.delitem(registry, "polarity", raising=False)
    register_reader("polarity")(FILE_READERS["classification"])
    register_head("polarity")(HEADS["classification"])
    assert FILE_READERS["polarity"] is FILE_READERS["classification"]
    assert HEADS["polarity"] is HEADS["classification"]
    for registry in (FILE_READERS, HEADS):
        del registry["polarity"]
