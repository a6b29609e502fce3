"""Reports of an evaluation: where they may be written, and their picture."""

import io
import os
import shutil
import subprocess
import sys

import matplotlib.image
import pytest

from official import xlnet
from official.xlnet.errors import ConfigError
from official.xlnet.runtime.pictures import new_figure, png
from official.xlnet.tasks.reports import draw_confusion
from tests.helpers.world import command


def test_a_report_replaces_no_result_of_a_run_and_no_input(world, tmp_path, capsys):
    task = world.task("classification")
    run = shutil.copytree(task.model, tmp_path / "run")
    before = (run / "metrics.json").read_bytes()
    command("evaluate", status=2, model=run, data=task.dev, output=run)
    assert f"than the input {run}, which would be lost" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"output: expected another directory than the input"):
        xlnet.evaluate(run, task.dev, output=run / ".")
    with pytest.raises(ConfigError, match=r"a directory without a run, .* got .*run"):
        xlnet.evaluate(task.model, task.dev, output=run)
    with pytest.raises(ConfigError, match=r"output: expected another file than .*predictions"):
        data = shutil.copy(task.dev, tmp_path / "predictions.jsonl")
        xlnet.evaluate(task.model, data, output=tmp_path)
    command("export", status=2, model=run, output=run)
    assert (run / "metrics.json").read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["predictions.jsonl", "run"]


def test_a_confusion_matrix_is_drawn_whatever_the_backend_of_the_host(tmp_path):
    """sklearn's display would import pyplot, which takes the backend of a notebook."""
    figure = new_figure(6, 5)
    axes = figure.subplots()
    draw_confusion(axes, ["bad", "$", "good"], ["bad", "good", "good"], ["bad", "bad", "good"])
    assert [text.get_text() for text in axes.texts] == list("100000101")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["bad", "$", "good"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Predicted label", "True label")
    assert matplotlib.image.imread(io.BytesIO(png(figure)), format="png").shape[0] == 600


def test_a_backend_that_is_not_installed_does_not_end_a_command():
    program = "import sys; from official.xlnet import cli; cli.main(); import matplotlib.figure"
    arguments = [sys.executable, "-c", program, "--version"]
    subprocess.run(arguments, env={**os.environ, "MPLBACKEND": "nothing"}, check=True)
