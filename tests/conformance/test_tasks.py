"""Every task of the registry: complete by `check_task`, documented, its metrics by oracles."""

import re

import numpy as np
import pytest
from sklearn import metrics

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.configs.sections import HeadSections
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.modeling.heads import create_head
from official.xlnet.tasks.batching import TrainingBatches
from official.xlnet.tasks.multiple_choice import ChoiceExample
from official.xlnet.tasks.ranking import RankingExample
from official.xlnet.tasks.task import Task, complete_task, metrics_of, register_task
from official.xlnet.tasks.token_classification import TaggedExample
from official.xlnet.testing import check_task
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.conformance import effects
from tests.conformance.key_rows import TASK
from tests.helpers.documents import ROOT
from tests.helpers.oracles.metrics import METRICS
from tests.helpers.package.of_projects import entries

# {task: {metric: a function of examples and predictions that computes it in another way}}
ORACLES = METRICS | entries("ORACLES")
# A row of the data is an example, or several are.
FAST = {"classification", "ranking"}
# Whole in `.ci/run`; all others every night.
SLOW = {"classification", "question_answering", "token_classification", "multitask"}


def rows_of_tasks():
    """(task, whether it is checked quickly): each as a whole, most of them slow or nightly."""
    rows = []
    for name in TASKS.names():
        if name in FAST or name not in SLOW:
            rows.append(pytest.param(name, True, marks=[] if name in FAST else pytest.mark.slow))
        mark = pytest.mark.slow if name in SLOW else pytest.mark.nightly
        rows.append(pytest.param(name, False, marks=mark))
    return rows


@pytest.mark.parametrize(("name", "quick"), rows_of_tasks())
def test_a_task_is_complete(name, quick):
    check_task(name, quick=quick, oracles=ORACLES.get(name, {}))
    page = (ROOT / "docs/tasks.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{name}` \|", page, re.MULTILINE), "no row in docs/tasks.md"


# Tasks whose batches have labels of several kinds under one name.
WITHOUT_RULE = {"multitask"}


@pytest.mark.parametrize("name", [name for name in TASKS.names() if name not in WITHOUT_RULE])
def test_a_head_says_which_labels_it_takes(name):
    """Else `fit` of Keras trains for missing labels, -1 or NaN; subclasses inherit it."""
    config = XLNetConfig.from_dict({**TASK, "task": TASK["task"] | {"name": name}})
    task_class, size = TASKS[name], len(TASKS[name].typical)
    complete_task(task_class, config, task_class.typical)
    task = task_class(config, Tokenizer(effects.vocabulary()))
    units = task.training_units(task_class.typical)
    batches = TrainingBatches(units, config.task.max_length, [config.task.max_length], size, seed=0)
    rule = create_head(HeadSections(config.model, config.task)).label_rule()
    batch = next(batches(0))
    if "label" not in batch:
        assert rule is None
        return
    assert rule is not None, f"{name}: `label_rule` of its head returns None"
    labels = np.asarray(batch["label"])
    rule.check(labels)
    wrong = [np.nan] if rule.least == -np.inf else [np.nan, -1]
    if rule.are_classes:
        wrong.append(0.5)
    for value in wrong:
        changed = labels.astype(float)
        changed[-1] = value
        with pytest.raises(DataError, match=f"labels: expected .*, as {name} takes them, got"):
            rule.check(changed)


def task_of(name, labels=()):
    task = TASKS[name].__new__(TASKS[name])
    task.config = XLNetConfig.from_dict({"task": {"name": name, "labels": labels}})
    task.labels = task.config.task.labels
    return task


def test_metrics_of_random_predictions():
    """Of more classes than the examples of `check_task` have."""
    rng, number = np.random.default_rng(0), 37
    names, scores = np.array(["a", "b", "c"]), rng.random((2, number))
    true, predicted = names[rng.integers(3, size=(2, number))]
    has_true, has_predicted = rng.random((2, number, 3)) < 0.4
    choices = rng.integers(3, size=(2, number)).tolist()
    groups = rng.choice(["high", "middle"], number)
    share = dict.fromkeys(names, 1 / 3)
    cases = {
        "classification": (
            [TextExample("", (), name) for name in true],
            [{"label": name, "probabilities": share} for name in predicted],
        ),
        "multi_label": (
            [TextExample("", (), tuple(names[row])) for row in has_true],
            [{"probabilities": dict(zip(names, row, strict=True))} for row in has_predicted],
        ),
        "regression": (
            [TextExample("", (), x) for x in scores[0]],
            [{"score": x} for x in scores[1]],
        ),
        "multiple_choice": (
            [ChoiceExample("", (), (), *x) for x in zip(choices[0], groups, strict=True)],
            [{"choice": x} for x in choices[1]],
        ),
    }
    for name, arguments in cases.items():
        found = task_of(name, list(names)).evaluate(*arguments)
        assert len(found) >= 3
        expected = {metric: ORACLES[name][metric](*arguments) for metric in found}
        assert found == pytest.approx(expected), name


@pytest.mark.parametrize(
    ("true", "predicted", "undefined"),
    [
        ([1.0], [2.0], {"pearson", "spearman", "r2"}),
        ([1.0, 1.0], [1.0, 2.0], {"pearson", "spearman", "r2"}),
        ([1.0, 2.0], [3.0, 3.0], {"pearson", "spearman"}),
    ],
)
def test_metrics_without_a_value_are_undefined(true, predicted, undefined):
    examples = [TextExample("", (), x) for x in true]
    found = task_of("regression").evaluate(examples, [{"score": x} for x in predicted])
    assert {name for name, value in found.items() if value is None} == undefined
    assert found["root_mean_squared_error"] == found["mean_squared_error"] ** 0.5 > 0


def test_data_without_entities_or_pairs_have_undefined_metrics():
    tagging, tagged = task_of("token_classification", ["B-x", "O"]), [("B-x", "O"), ("O", "O")]
    for predicted, accuracy in zip(tagged, (0.5, 1.0), strict=True):
        arguments = [TaggedExample("", ("a", "b"), tagged[1])], [{"tags": list(predicted)}]
        found = tagging.evaluate(*arguments)
        undefined = dict.fromkeys(("precision", "recall", "f1"))
        assert found == {**undefined, "word_accuracy": accuracy}
        assert tagging.details(*arguments)["entities"].keys() <= {"x"}
    ranking = task_of("ranking")
    ranked = [RankingExample(x, "q", "q", x, 1.0, subtask="t") for x in "ab"], [{"score": 0.5}] * 2
    expected = {"pair_accuracy": None, "loss": None, "mrr": 1.0, "ndcg@20": 1.0}
    assert ranking.evaluate(*ranked).items() >= expected.items()


def test_macro_f1_is_over_the_classes_that_occur():
    task, names = task_of("classification", list("abcd")), [*"aab"]
    for predicted in ([*"aab"], [*"aca"]):
        share = [{"label": x, "probabilities": dict.fromkeys("abcd", 0.25)} for x in predicted]
        examples = [TextExample("", (), x) for x in names]
        found = task.evaluate(examples, share)["macro_f1"]
        assert found == metrics.f1_score(names, predicted, average="macro", zero_division=0)
        number = len({*names, *predicted})
        assert metrics_of(task, examples, share)["macro_f1_is_over"] == f"{number} of 4 classes"


def test_macro_f1_of_several_labels_is_over_the_classes_that_occur():
    """A class that neither labels nor predictions have is left out."""
    task = task_of("multi_label", list("abcd"))
    examples = [TextExample("", (), ("a",)), TextExample("", (), ("a", "b"))]
    rows = [{"probabilities": dict(zip("abcd", row, strict=True))} for row in np.eye(4)[[0, 0]]]
    found = metrics_of(task, examples, rows)
    assert (found["macro_f1"], found["macro_f1_is_over"]) == (0.5, "2 of 4 classes")
    rows[1]["probabilities"]["d"] = 0.7  # Predicted wrongly: it occurs, with an F1 of 0.
    found = metrics_of(task, examples, rows)
    assert (found["macro_f1"], found["macro_f1_is_over"]) == (
        pytest.approx(1 / 3),
        "3 of 4 classes",
    )
    nothing = metrics_of(
        task, [TextExample("", (), ())], [{"probabilities": dict.fromkeys("abcd", 0)}]
    )
    assert (nothing["macro_f1"], nothing["micro_f1"]) == (None, 0.0)


def test_a_misspelt_metric_is_refused_when_the_task_registers():
    class Mine(Task):
        metric, metrics = "acuracy", ("accuracy", "loss")

    with pytest.raises(
        ConfigError, match="metric of the task 'mine': expected one of accuracy, loss, got"
    ):
        register_task("mine")(Mine)

    class Cut(Mine):
        @property
        def metric(self):
            return f"acuracy@{self.config.task.max_length}"

    with pytest.raises(ConfigError, match=r"task 'cut': .* got 'acuracy@128'"):
        register_task("cut")(Cut)
    assert not {"mine", "cut"} & {*TASKS}

    class Other(Mine):
        def evaluate(self, examples, predictions):
            return {"acuracy": 1.0}

    register_task("other")(Other)  # It declares no metrics for its own `evaluate`.
    del TASKS["other"]
