"""Shipped recipes are promises: what each needs is there on the device that its comment names."""

import re

import pytest

from benchmarks.accelerators import recipes
from benchmarks.accelerators.rows import key_of
from benchmarks.harness.tables import read_rows
from official.xlnet.configs import training
from official.xlnet.configs.training import TrainingConfig

DOCUMENTS = ("docs/performance.md", "docs/distributed.md")


def test_each_recipe_fits_the_device_that_its_comment_names():
    names = recipes.all_recipes()
    assert len(names) > 40 and "ablation/base/no_span" in names
    assert [sentence for name in names for sentence in recipes.broken_promises(name)] == []


@pytest.mark.parametrize(
    ("name", "changes", "sentence"),
    [
        ("large", {"capacity": 15e9}, "a step on v5p takes 26.* bytes of 15"),
        ("large", {"save": 314e9}, "a checkpoint has 314"),
        ("base", {"open_files": 8448}, "8448 open files on v5e"),
        ("tiny", {"step": None}, "the memory of a step on two CPU cores is not on file"),
        ("base", {"step": 11.2e9}, "the comment says 10 GB"),
        ("squad1", {"device": "h100"}, "the comment names {'v100'}, sizes are known of {'h100'}"),
    ],
)
def test_a_recipe_that_does_not_is_named(name, changes, sentence, monkeypatch):
    sizes = [recipes.dataclasses.replace(one, **changes) for one in recipes.needs(name)]
    monkeypatch.setattr(recipes, "needs", lambda name: sizes)
    assert any(re.search(sentence, found) for found in recipes.broken_promises(name))


def test_the_start_is_what_the_compiler_counts():
    """Weights, moments and memory: what a step takes besides the batch."""
    rows = [row for row in read_rows(recipes.report.RESULTS) if row["fits"]]
    for name, cases in recipes.COMPILED.items():
        for key, one in zip(cases, recipes.needs(name), strict=True):
            (row,) = (row for row in rows if key_of(row) == key)
            assert one.start == pytest.approx(row["arguments"], rel=0.02)


def test_the_table_is_that_of_the_recipes():
    with open(recipes.report.DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    assert f"<!-- table: recipes -->\n{recipes.table()}\n<!-- end -->" in text


def test_the_default_of_the_memory_in_checkpoints_is_what_its_key_says():
    largest = training.LARGEST_SAVED_MEMORY
    stated = f"{largest >> 30} GiB"
    assert f"None: up to {stated}." in TrainingConfig.__doc__
    for document in DOCUMENTS:
        with open(document, encoding="utf-8") as file:
            assert stated in file.read()
    for setting, expected in ((None, (True, False)), (True, (True, True)), (False, (False, False))):
        config = TrainingConfig(checkpoint_memory=setting)
        assert tuple(map(config.saves_memory, (largest, largest + 1))) == expected
