"""Files and frames of several data sets, each with columns of its own."""

import dataclasses

import datasets
import pandas as pd
import pytest

from data_prep.tasks.task_data import read_task, stream_task
from official.xlnet.configs.registry import DATASETS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.errors import DataError
from tests.helpers.compare import assert_refused
from tests.unit.data_prep.test_task_formats import task_of, texts_and_labels
from tests.unit.data_prep.test_task_readers import DATA_SETS, write


@pytest.mark.parametrize(("name", "file", "text", "examples"), DATA_SETS)
def test_data_sets_of_a_multi_task_are_read_alike_each_time(name, file, text, examples, tmp_path):
    """Training sets `text_columns`, by which dev and inputs are read."""
    kind = DATASETS.find(name, {"name": name})["name"]
    task = TaskConfig.create(name="multitask", rankings=(name,) if name == "ranking" else ())
    source = {name: str(write(tmp_path / file, text))}
    if kind not in ("classification", "regression", "ranking"):
        return
    expected = [dataclasses.replace(example, subtask=name) for example in examples]
    for _ in range(2):
        assert read_task(source, task)[0] == expected
    inputs = [(example.id, example.subtask) for example in stream_task(source, task)]
    assert inputs == [(example.id, name) for example in examples]


def multitask_files(tmp_path):
    (tmp_path / "own.csv").write_text("stars,pair_ID,one,two,three\ngood,1,a,b,c\nbad,2,d,e,f\n")
    (tmp_path / "more.csv").write_text("stars,one\n3.5,a\n1.25,b\n")
    (tmp_path / "sst2.tsv").write_text("sentence\tlabel\nfine\t1\ndull\t0\n")
    names = ("own.csv", "more.csv", "sst2.tsv")
    return ",".join(f"{name.partition('.')[0]}={tmp_path / name}" for name in names)


def test_each_data_set_of_a_multi_task_has_its_columns(tmp_path):
    files = multitask_files(tmp_path)
    settings = {"label_column": "stars", "regressions": ("more",)}
    task = task_of("multitask", text_columns=("own/three", "own/one"), **settings)
    expected = [
        (("c", "a"), "good"),
        (("f", "d"), "bad"),
        *((("a",), 3.5), (("b",), 1.25), (("fine",), "1"), (("dull",), "0")),
    ]
    assert texts_and_labels(read_task(files, task)[0]) == expected
    assert task.subtasks == ("own", "more", "sst2")
    assert task.text_columns == ("own/three", "own/one", "more/one", "sst2/sentence")
    # What was found in training is what is read afterwards.
    assert texts_and_labels(read_task(files, task)[0]) == expected
    predicted = list(stream_task(f"own={tmp_path / 'own.csv'}", task))
    assert [(e.texts, e.subtask) for e in predicted] == [(("c", "a"), "own"), (("f", "d"), "own")]
    # In Python, tables and files by name.
    of_files, _ = read_task(files, task)
    paths = dict(part.split("=") for part in files.split(","))
    tables = paths | {name: pd.read_csv(paths[name]) for name in ("own", "more")}
    assert texts_and_labels(read_task(tables, task)[0]) == expected
    again = task_of("multitask", text_columns=("own/three", "own/one"), **settings)
    assert read_task(tables, again)[0] == of_files and again == task
    assert list(stream_task({"own": pd.read_csv(paths["own"])}, task)) == predicted
    task = task_of("multitask", text_columns=("one",), **settings)
    assert read_task(files, task)[0][0].texts == ("a",)
    assert task.text_columns == ("own/one", "more/one", "sst2/sentence")


@pytest.mark.parametrize("settings", [{"label_column": "x"}, {"text_columns": ("sentence",)}])
def test_settings_that_no_data_set_uses_are_refused(settings, tmp_path):
    files = multitask_files(tmp_path).split(",")[2]
    (key,) = settings
    assert_refused(
        f"task.{key}: expected no setting, .* sst2 are known",
        read_task,
        files,
        task_of("multitask", **settings),
    )
    assert_refused(
        "expected each NAME once, got 'sst2=", read_task, f"{files},{files}", task_of("multitask")
    )


@pytest.mark.parametrize("names", [("train", "validation"), ("train", "validation_matched")])
def test_splits_are_not_the_data_sets_of_a_multi_task(names):
    split = datasets.Dataset.from_dict({"sentence": ["fine", "dull"], "label": [1, 0]})
    with pytest.raises(DataError, match=r"expected .name of a data set: table., got splits"):
        read_task(datasets.DatasetDict(dict.fromkeys(names, split)), task_of("multitask"))
