"""`report.html`: what it shows is what the files of a run say; strangers' texts stay texts."""

import html
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unicodedata

import numpy as np
import pytest
import tensorflow as tf
from scipy.stats import binomtest

from official import xlnet
from official.xlnet.checkpoints.pretrained_directory import load_pretrainer
from official.xlnet.commands.declarations import COMMON, declaration
from official.xlnet.data.examples import TextExample
from official.xlnet.data.pretraining_dataset import Records
from official.xlnet.files.yaml_files import read_yaml
from official.xlnet.inference.task_prediction import task_of
from official.xlnet.jobs.baselines import comparison
from official.xlnet.projects.pictures.html_page import Line, chart, html_page, smoothed
from official.xlnet.projects.pictures.pretraining_page import pretraining_page
from official.xlnet.projects.pictures.scalars import read_scalars
from official.xlnet.projects.pictures.task_page import task_page
from official.xlnet.runtime.metrics_log import RunLog
from official.xlnet.runtime.pages import PretrainingRun, TaskRun
from official.xlnet.tasks.multiple_choice import ChoiceExample
from official.xlnet.tasks.question_answering import QuestionExample
from official.xlnet.tasks.reports import write_report
from official.xlnet.tasks.token_classification import TaggedExample
from tests.helpers.documents import ROOT, overflowing, rendered
from tests.helpers.served_models import random_task


def sections(page):
    """{heading: its HTML} of a page, and its title."""
    title, *parts = re.split(r"<h[12]>(.*?)</h[12]>", page)[1:]
    return html.unescape(title), dict(zip(parts[1::2], parts[2::2], strict=True))


def lines_of(*path):
    return pathlib.Path(*path).read_text().splitlines()


def cells(table):
    """The rows of a table."""
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    return [[html.unescape(x) for x in re.findall(r"<t[dh].*?>(.*?)</t[dh]>", x)] for x in rows]


def points_of(part, style):
    """The places of a line, from left to right, and upwards from the bottom."""
    (places,) = re.findall(rf"<polyline points='([^']*)' class='{style}'", part)
    return np.array([list(map(float, place.split(","))) for place in places.split()]) * [1, -1]


def test_the_page_of_fine_tuning_says_what_its_files_say(world):
    task = world.task("classification")
    metrics, predictions = task.json("metrics.json"), task.predictions()
    page = pathlib.Path(task.model, "report.html").read_text()
    assert "<script" not in page and not re.search(r"(src|href)=.(?!data:image/png)", page)
    title, found = sections(page)
    assert title == f"classification: accuracy {metrics['accuracy']:.4f} on 41 examples"
    head, first, *_ = cells(found["Result"])
    of_each = [metrics, *(metrics["baselines"][name.replace(" ", "_")] for name in head[2:])]
    assert first == ["accuracy", *(f"{of['accuracy']:.4f}" for of in of_each)] and len(head) == 4
    assert html.escape(comparison(task_of(task.model), metrics, metrics["baselines"])) in page
    for share in (of["accuracy"] for of in of_each):
        low, high = binomtest(round(share * 41), 41).proportion_ci(0.95, "wilson")
        assert f" {low:.3f} to {high:.3f}" in found["Result"]
    assert ["steps trained in all", "60"] in cells(found["Data"])
    assert "150 examples" in found["Data"] and ["train examples", "150"] in cells(found["Data"])
    losses = [json.loads(x)["loss"] for x in lines_of(task.model, "history.jsonl")]
    heights = points_of(found["Training"], "raw")[:, 1]
    order = np.argsort(losses, kind="stable")[1:-1]  # The lowest and highest percent are clipped.
    assert len(heights) == 60 and (np.diff(heights[order]) > -0.11).all()
    wrong = [p for p in predictions if p["label"] != p["expected"]]
    worst = sorted(wrong, key=lambda p: p["probabilities"][p["expected"]])
    texts = dict(line.split("\t")[::-1] for line in lines_of(task.dev))
    shown = cells(found["Worst errors"])[1:]
    assert [row[0] for row in shown] == [p["id"] for p in worst] and len(shown) > 1
    assert [texts[row[1]] for row in shown] == [row[2] for row in shown]
    assert f"{metrics['calibration_error']:.4f}" in found["Calibration"]
    for line in html.unescape(re.search(r"<pre>(.*?)</pre>", found["Use"], re.S)[1]).splitlines():
        _, verb, *flags = shlex.split(line)
        assert declaration(verb).flag_table(COMMON)([verb, *flags]) == [verb] and task.model in line


def test_an_evaluation_of_several_models_has_a_page(world, tmp_path):
    task = world.task("classification")
    metrics = xlnet.evaluate([task.model, task.model], task.dev, output=str(tmp_path))
    title, found = sections((tmp_path / "report.html").read_text())
    assert title == f"classification: accuracy {metrics['accuracy']:.4f} on 41 examples"
    assert "Worst errors" in found and "Training" not in found
    assert html.unescape(found["Use"]).count(f"--model={task.model}") == 4


def test_the_page_of_pretraining_shows_the_run(world):
    page = pathlib.Path(world.pretrained, "report.html").read_text()
    _, found = sections(page)
    assert "Blanks" not in found  # It is no better than unigrams.
    result = dict(cells(found["Result"])[1:])
    assert float(result["loss"]) > float(result["loss of unigrams"])
    scalars = [json.loads(x) for x in lines_of(world.pretrained, "logs/scalars.jsonl")]
    held_out = {x["step"]: x["heldout_loss"] for x in scalars if "heldout_loss" in x}
    assert read_scalars(world.pretrained, "heldout_loss") == pytest.approx(held_out)
    assert [*held_out] == [20, 40, 60] and len(points_of(found["Training"], "dots")) == 3
    assert ["held-out loss", f"{held_out[60]:.4f}"] in cells(found["Result"])
    level = points_of(found["Training"], "level")[:, 1]
    assert level[0] == level[1] and "unigrams" in found["Training"]
    model, records = load_pretrainer(world.pretrained), Records(world.data)
    result = {"step": 60, "loss": 4.5}
    page = pretraining_page(PretrainingRun(world.pretrained, result, records, 4.7, model))
    blanks = cells(sections(page)[1]["Blanks"])[1:]
    text = unicodedata.normalize("NFKD", pathlib.Path(world.text).read_text())
    text = text.replace("\u0308", "")  # As the tokenizer cleans it.
    assert len(blanks) == 3 and all(x.count("%") == 5 and hidden in text for _, hidden, x in blanks)
    for written, hidden, _ in blanks:
        before, after = (part.split() for part in written.split("____"))
        around = " ".join([*before[-1:], hidden, *after[:1]])
        assert around in " ".join(text.split())
    assert "num_steps: 60" in found["Settings"] and read_yaml(f"{world.pretrained}/config.yaml")


def test_the_page_of_pretraining_imports_neither_tasks_nor_inference():
    code = (
        "import sys; import official.xlnet.projects.pictures.pretraining_page;"
        "parts = ('official.xlnet.tasks', 'official.xlnet.inference', 'data_prep');"
        "sys.exit(' '.join(name for name in sys.modules if name.startswith(parts)))"
    )
    imported = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True)
    assert imported.stderr.decode().strip() == ""


STRANGE = [
    "<script>alert(1)</script>",
    "</style><b>&amp;",
    "x" * 300,
    "<svg onload=alert(1)>",
    "שלום",
]


def test_texts_and_labels_of_strangers_are_shown_and_nothing_overflows(tmp_path):
    task = random_task("classification")[1]
    labels, rng = tuple(STRANGE), np.random.default_rng(5)
    task.labels = labels
    examples = [TextExample(f"<i>{n}", (STRANGE[n % 5],), labels[n % 5]) for n in range(23)]
    predictions = []
    for example in examples:
        probabilities = dict(zip(labels, rng.dirichlet([1] * 5).round(6).tolist(), strict=True))
        label = max(probabilities, key=probabilities.get)
        predictions.append({"id": example.id, "label": label, "probabilities": probabilities})
    metrics = {"accuracy": task.evaluate(examples, predictions)["accuracy"], "examples": 23}
    write_report(str(tmp_path), task, examples, predictions, metrics)
    page = task_page(TaskRun(str(tmp_path), task, "accuracy", examples, ["a model"]))
    assert "Training" not in sections(page)[1] and "--model=a model'" in html.unescape(page)
    wrong = [n for n, p in enumerate(predictions) if p["label"] != examples[n].label]
    surest = sorted(wrong, key=lambda n: -max(predictions[n]["probabilities"].values()))[:10]
    rows = cells(sections(page)[1]["Most confident errors"])[1:]
    assert [row[:2] for row in rows] == [[examples[n].id, examples[n].texts[0]] for n in surest]
    elements = rendered(page, tmp_path / "page.html")
    assert not re.search(r"<(script|b>|i>|svg o)", elements) and elements.count("alert(1)") > 4
    assert overflowing(page, tmp_path / "frame.html") == []
    unscrolled = page.replace("class='wide'", "")  # No column is outside.
    assert overflowing(unscrolled, tmp_path / "frame.html") == []
    wide = html_page("a", "", "<img style='width:500px'><pre>" + "x" * 300 + "</pre>")
    assert (
        "<img" in overflowing(wide, tmp_path / "frame.html")[0]
    )  # The test sees what is too wide.


JUDGED = {  # {kind: (examples, predictions, metric, its value of the judgements)}
    "classification": (
        [TextExample("1", ("a",), "good"), TextExample("2", ("b",), " bad")],
        [
            {"label": "bad", "probabilities": {"bad": 0.7, "good": 0.1, "fair": 0.2}},
            {"label": "bad", "probabilities": {"bad": 0.5, "good": 0.3, "fair": 0.2}},
        ],
        ("accuracy", lambda wrong: np.mean(wrong == 0), [[0.9, 0.7], [0, 0.5]]),
    ),
    "multi_label": (
        [TextExample("1", ("a",), ("good", "bad")), TextExample("2", ("b",), ())],
        [
            {"probabilities": {"bad": 0.7, "good": 0.1, "fair": 0.2}},
            {"probabilities": {"bad": 0.5, "good": 0.3, "fair": 0.2}},
        ],
        ("exact_match", lambda wrong: np.mean(wrong == 0), [[0.9, np.nan], [0, np.nan]]),
    ),
    "regression": (
        [TextExample("1", ("a",), 2.0), TextExample("2", ("b",), 4.0)],
        [{"score": 2.5}, {"score": 1.0}],
        ("mean_absolute_error", np.mean, [[0.5, np.nan], [3, np.nan]]),
    ),
    "multiple_choice": (
        [ChoiceExample("1", ("a",), ("b", "c"), 1), ChoiceExample("2", ("a",), ("b", "c"), 0)],
        [
            {"choice": 0, "probabilities": [0.75, 0.25]},
            {"choice": 0, "probabilities": [0.5, 0.5]},
        ],
        ("accuracy", lambda wrong: np.mean(wrong == 0), [[0.75, 0.75], [0, 0.5]]),
    ),
    "question_answering": (
        [QuestionExample("1", "q", "red cat", (("red cat", 0),)), QuestionExample("2", "q", "x")],
        [{"id": "1", "answer": "cat"}, {"id": "2", "answer": ""}],
        ("f1", lambda wrong: 100 * np.mean(1 - wrong), [[1 / 3, np.nan], [0, np.nan]]),
    ),
    "token_classification": (
        [TaggedExample("1", ("a", "b"), ("B-X", "O")), TaggedExample("2", ("c", "d"), ("O", "O"))],
        [{"tags": ["O", "O"]}, {"tags": ["O", "O"]}],
        ("word_accuracy", lambda wrong: 1 - np.mean(wrong), [[0.5, np.nan], [0, np.nan]]),
    ),
}


@pytest.mark.parametrize("kind", JUDGED)
def test_errors_are_those_of_the_metric(kind):
    examples, predictions, (metric, of_all, expected) = JUDGED[kind]
    labels = {"labels": ("B-X", "O")} if kind == "token_classification" else {}
    task = random_task(kind, **labels)[1]
    judged = [task.error_and_probability(*pair) for pair in zip(examples, predictions, strict=True)]
    np.testing.assert_allclose(judged, expected, atol=1e-12)
    value = task.evaluate(examples, predictions)[metric]
    assert of_all(np.array(judged)[:, 0]) == pytest.approx(value)


def test_scalars_are_those_of_the_newest_run_up_to_a_damaged_event(tmp_path):
    for start, value in ((0, 1.0), (10, 2.0)):
        log = RunLog(str(tmp_path), start, False)
        log.scalars(start + 10, loss=float("nan"), heldout_loss=value)
        log.scalars(20, heldout_loss=value, loss=7.0)
        log.close()
    found = read_scalars(str(tmp_path), "heldout_loss")
    assert found == {10: 1.0, 20: 2.0} and read_scalars(str(tmp_path), "loss") == {20: 7.0}
    *_, last = sorted((tmp_path / "logs").glob("events.*"))
    shutil.copy(last, tmp_path / "copy")
    last.write_bytes(last.read_bytes()[:-3])
    assert read_scalars(str(tmp_path), "heldout_loss") == {10: 1.0, 20: 2.0}
    assert len([*tf.data.TFRecordDataset(str(tmp_path / "copy"))]) > 2


@pytest.mark.parametrize("size", [1, 3, 101, 1723])
def test_a_chart_has_its_points_in_their_places(size):
    rng = np.random.default_rng(size)
    steps = np.cumsum(rng.integers(1, 5, size)).tolist()
    losses = rng.normal(3, 1, size).tolist()
    points = [*zip(steps, losses, strict=True)]
    smooth, width = smoothed(points), max(1, size // 50)
    expected = np.convolve(losses, np.ones(width) / width, mode="valid")
    np.testing.assert_allclose(smooth, np.c_[steps[width - 1 :], expected])
    part = chart([Line("a", "dots", points), Line("none", "raw", [])], "step", "loss")
    places = points_of(part, "dots")
    every = -(-size // 800)
    assert len(places) == -(-size // every) and "none" not in part
    scale = {"x": [], "y": []}
    pattern = r"<text x='([\d.]+)' y='([\d.]+)' class='([xy])'>([-\d.,e+]+)</text>"
    for x, y, axis, label in re.findall(pattern, part):
        scale[axis].append(
            (float(label.replace(",", "")), float(x) if axis == "x" else 4 - float(y))
        )
    for axis, values in (("x", steps), ("y", losses)):
        (low, start), *_, (high, end) = scale[axis]
        assert low <= min(values) and max(values) <= high and len(scale[axis]) <= 8
        placed = start + (np.array(values[::every]) - low) / (high - low) * (end - start)
        np.testing.assert_allclose(places[:, "xy".index(axis)], placed, atol=0.11)
