"""Sources of several data sets: how they are divided, and what is refused."""

import pytest

from data_prep.tasks.task_data import read_task
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.projects.multitask import MultitaskConfig
from tests.projects.multitask.rows import ANSWER_MODULE


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([("a", "x")], DataError, "expected {name: table}, got list"),
        ({"train": [], "test": []}, DataError, "table}, got splits: train, test"),
        ({"a": [("b", "x")], "c": 3}, TypeError, "examples c: .* a table, got int 3"),
    ],
)
def test_wrong_sources_are_named(rows, error, message):
    with pytest.raises(error, match=message):
        read_task(rows, TaskConfig.create(name="multitask"))


def test_trained_data_sets_of_multitask_may_have_names_of_splits():
    task = MultitaskConfig(name="multitask", subtasks=("dev", "test"))
    assert [name for name, *_ in task.parts_of_source({"test": [], "dev": []})] == ["test", "dev"]


def test_groups_of_multitask():
    task = MultitaskConfig(name="multitask", group_column="who")
    parts = {name: [{"text": "a", "who": who, "label": "x"}] for name, who in (("m", 3), ("n", 5))}
    found = [(e.texts, e.group, e.subtask) for e in read_task(parts, task)[0]]
    assert found == [(("a",), "3", "m"), (("a",), "5", "n")]


def test_measurements_are_no_classes_of_a_multitask_data_set():
    settings = TaskConfig.create(name="classification")
    rows = [TextExample(str(n), ("a",), label) for n, label in enumerate(["1", "2.5", "-3"])]
    task = MultitaskConfig(name="multitask", subtasks=("tone",))
    with pytest.raises(DataError, match=r"got numbers such as 2\.5; task\.regressions=\[own\]"):
        task.complete_from_files([("own", "own.tsv", settings, rows)])
    task.complete_from_files(
        [("own", "own.tsv", settings, [*rows[:1], TextExample("9", ("a",), "2.5 stars")])]
    )


def test_settings_of_the_answer_module_know_of_the_data_sets():
    """Those of an extension are a copy in another class, which has no data sets of its own."""
    task = MultitaskConfig(
        name="multitask",
        answer_module=ANSWER_MODULE,
        subtasks=("pairs", "stsb", "words"),
        text_columns=("pairs/one", "pairs/two", "stsb/a", "stsb/b", "words/text"),
    )
    values = {"target_means": [0.0, 2.3, 0.0], "target_scales": [1.0, 1.5, 1.0]}
    for settings in task.updated(values, "").settings_in_use():
        settings.check()
    wrong = task.updated({name: numbers[:2] for name, numbers in values.items()}, "")
    for settings in wrong.settings_in_use():
        with pytest.raises(ConfigError, match=r"target_means: expected 3 numbers or none"):
            settings.check()
