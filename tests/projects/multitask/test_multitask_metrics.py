"""Metrics of several data sets: those of each, and their mean."""

import numpy as np

from official.xlnet.data.examples import TextExample
from official.xlnet.tasks.ranking import RankingExample
from official.xlnet.tasks.task import metrics_of
from tests.conformance.test_tasks import task_of


def test_a_ranking_without_pairs_has_an_undefined_metric_and_mean():
    ranking = task_of("ranking")
    ranking.config.task.metric = "pair_accuracy"
    ranked = [RankingExample(x, "q", "q", x, 1.0, subtask="t") for x in "ab"], [{"score": 0.5}] * 2
    several = task_of("multitask")
    several.parts, several.config.task.rankings = {"t": ranking}, ("t",)
    found = several.evaluate(*ranked)
    assert found["mean"] is found["t/pair_accuracy"] is found["loss"] is None


def test_macro_f1_of_several_labels_is_over_the_classes_that_occur():
    task = task_of("multi_label", list("abcd"))
    several = task_of("multitask")
    several.parts = {"t": task, "u": task}
    examples = [TextExample("", (), ("a",), "u"), TextExample("", (), ("a", "b"), "u")]
    rows = [{"probabilities": dict(zip("abcd", row, strict=True))} for row in np.eye(4)[[0, 0]]]
    rows[1]["probabilities"]["d"] = 0.7  # Predicted wrongly: it occurs, with an F1 of 0.
    assert metrics_of(several, examples, rows)["u/macro_f1_is_over"] == "3 of 4 classes"


def test_a_mean_over_some_data_sets_names_them():
    """The checkpoint that is chosen by it is the best of these."""
    task = task_of("classification", list("ab"))
    several = task_of("multitask")
    several.parts = {name: task for name in "tuv"}
    examples = [TextExample(str(n), (), "a", name) for n, name in enumerate("vtuv")]
    predictions = [{"label": "a", "probabilities": {"a": 0.9, "b": 0.1}}] * len(examples)
    assert "mean_is_over" not in metrics_of(several, examples, predictions)
    assert metrics_of(several, examples[:2], predictions[:2])["mean_is_over"] == "t, v"
    assert metrics_of(several, examples[:1], predictions[:1])["mean_is_over"] == "v"
