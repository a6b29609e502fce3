"""Pages after a run: whoever registers one gets the run, and no error ends it."""

import json
import pathlib

import pytest

from official import xlnet
from official.xlnet.configs.registry import PRETRAINING_PAGES, TASK_PAGES, Registry
from official.xlnet.errors import ConfigError
from official.xlnet.runtime import pages


@pytest.fixture
def no_pages(monkeypatch):
    """Registries without the pages of projects."""
    for run, table in (("pretraining", PRETRAINING_PAGES), ("task", TASK_PAGES)):
        monkeypatch.setitem(pages._PAGES, run, Registry(table.key))


def test_no_error_of_a_page_ends_a_run(tmp_path, caplog, no_pages):
    xlnet.register_page("task", "broken.html")(lambda run: 1 / 0)
    xlnet.register_page("task", "lone.html")(lambda run: run)
    pages.write_pages("task", str(tmp_path), lambda: "lone \ud800")
    assert "no broken.html: ZeroDivisionError" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["lone.html"]
    assert (tmp_path / "lone.html").read_bytes() == b"lone ?"
    pages.write_pages("pretraining", str(tmp_path / "none"), lambda: 1 / 0)  # Has no page.
    assert not (tmp_path / "none").exists()


def test_a_run_that_cannot_be_described_is_a_warning(tmp_path, caplog, no_pages):
    xlnet.register_page("task", "a.html")(lambda run: "never")
    pages.write_pages("task", str(tmp_path), lambda: 1 / 0)
    assert "no a.html: ZeroDivisionError" in caplog.text and not [*tmp_path.iterdir()]


def test_a_file_has_one_page_and_a_run_one_of_two_names(no_pages):
    xlnet.register_page("task", "a.html")(test_a_run_that_cannot_be_described_is_a_warning)
    with pytest.raises(ConfigError, match=r"page of fine-tuning .*: expected an unused name"):
        xlnet.register_page("task", "a.html")(test_no_error_of_a_page_ends_a_run)
    with pytest.raises(ConfigError, match="run: expected one of pretraining, task, got 'tasks'"):
        xlnet.register_page("tasks", "b.html")


def test_evaluations_write_the_pages_of_others_and_protect_them(world, tmp_path, monkeypatch):
    monkeypatch.setitem(pages._PAGES, "task", Registry(TASK_PAGES.key))

    @xlnet.register_page("task", "models.json")
    def models(run):
        return json.dumps([run.directory, run.metric, len(run.examples), *run.models])

    task = world.task("classification")
    output = str(tmp_path / "report")
    metrics = xlnet.evaluate(task.model, task.dev, output=output)
    written = json.loads(pathlib.Path(output, "models.json").read_text())
    assert written == [output, "accuracy", metrics["examples"], task.model]
    assert {path.name for path in pathlib.Path(output).iterdir()} == {
        "models.json",
        "metrics.json",
        "predictions.jsonl",
        "evaluation.png",
    }
