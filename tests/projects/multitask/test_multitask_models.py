"""Models of several data sets: trained, predicted with and served, each with its own texts."""

import random

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from official.xlnet.api.export import export
from official.xlnet.data.examples import TextExample
from official.xlnet.data.graph_names import graph_names
from official.xlnet.inference.task_prediction import predict_examples
from official.xlnet.serving.client.prediction import row_of
from official.xlnet.serving.factory import task_service
from official.xlnet.serving.services.base import ExportSettings
from official.xlnet.tasks.ranking import RankingExample
from official.xlnet.testing.tasks import require_same
from tests.e2e.test_finetune import finetune
from tests.helpers.served_models import mixed_texts, random_task, save_task, tokenizers
from tests.helpers.task_corpora import labelled, write_table
from tests.helpers.world import command
from tests.projects.multitask.rows import ANSWER_MODULE
from tests.unit.serving.test_graph_names import assert_same, predictions_of, serving, write_rows


@pytest.mark.slow
def test_several_tasks_have_a_signature_with_their_own_texts_each(tmp_path):
    columns = {"标题": ("text", "Review Text"), "a-b": ("b", "text", "1"), "class": ("b",)}
    model, _ = random_task(
        "multitask",
        subtasks=tuple(columns),
        labels=("标题/bad", "标题/good", "a-b/1", "a-b/2", "a-b/3", "class/x", "class/y"),
        text_columns=tuple(f"{task}/{name}" for task, names in columns.items() for name in names),
    )
    directory = save_task(model, str(tmp_path / "model"))
    report = export(directory, str(tmp_path / "exported"))
    names = graph_names(tuple(columns), "task")
    assert {"serving_default", "token_ids", "examples", *names} == report["signatures"].keys()
    with serving(str(tmp_path / "exported")) as server:
        for name, (task, its) in zip(names, columns.items(), strict=True):
            texts = [[text.replace("\0", "") for text in mixed_texts(5, ord(x[0]))] for x in its]
            rows = list(zip(*texts, strict=True))
            path, _ = write_rows(tmp_path / f"{name}.csv", its, rows, random.Random(3))
            expected = predictions_of(tmp_path, f"--model={directory}", f"--input={task}={path}")
            found = predictions_of(tmp_path, server, f"--signature={name}", f"--input={path}")
            assert_same(
                found, [{k: v for k, v in row.items() if k != "subtask"} for row in expected]
            )


@pytest.mark.slow
def test_tasks_of_mt_dnn_read_their_own_texts():
    columns = ("one", "two"), ("document", "query")
    texts = [f"{name}/{x}" for name, of in zip(("nli", "found"), columns, strict=True) for x in of]
    model, task = random_task(
        "multitask",
        subtasks=("nli", "found"),
        labels=("nli/no", "nli/yes"),
        text_columns=tuple(texts),
        rankings=("found",),
        answer_module=ANSWER_MODULE,
        query_length=5,
    )
    settings = ExportSettings((23,), text_columns=sum(columns, ()), texts_of_subtasks=columns)
    service = task_service(model, tokenizers()[1], settings)
    texts = mixed_texts(13), mixed_texts(13, seed=1)
    inputs = dict(zip(settings.text_columns, map(tf.constant, texts + texts), strict=True))
    outputs = {name: x.numpy() for name, x in service.serve_texts(**inputs).items()}
    pairs = list(zip(*texts, strict=True))
    nli = [TextExample(str(n), pair, subtask="nli") for n, pair in enumerate(pairs)]
    found = [RankingExample(str(n), "q", b, a, subtask="found") for n, (a, b) in enumerate(pairs)]
    for prefix, examples in (("nli_", nli), ("found_", found)):
        for row, prediction in enumerate(predict_examples(model, task, examples)):
            answer = row_of(outputs, row).items()
            require_same({k.removeprefix(prefix): x for k, x in answer}, prediction, prefix)
    assert np.ptp(outputs["found_score"]) > 1e-3


@pytest.mark.slow
def test_several_data_sets_at_once_then_one_of_them(world, tmp_path):
    rng, files = random.Random(7), world.files("classification")
    queries = [(f"q{n}", text, int(y == "good")) for n in range(20) for y, text in labelled(rng, 2)]
    ranked = write_table(tmp_path / "ranked.tsv", ("query", "document", "relevance"), queries)
    pairs = [(text, "is it good", label) for label, text in labelled(rng, 41)]
    pairs = write_table(tmp_path / "pairs.tsv", ("one", "two", "label"), pairs)
    numbers = world.files("multitask")["train"].partition(",")[2]
    parts = [f"words={path},{numbers},ranked={ranked},pairs={pairs}" for path in files.values()]
    settings = ["task.rankings=[ranked]", f"task.answer_module={ANSWER_MODULE}", "num_steps=100"]
    settings += ["checkpoint_steps=50", "task.text_columns=[words/text,pairs/one,pairs/two]"]
    metrics = finetune(world, *parts, tmp_path / "both", *settings, task="multitask")
    assert metrics["words/accuracy"] > 0.8 and metrics["ranked/pair_accuracy"] > 0.8
    names = ("words/accuracy", "stsb/pearson", "ranked/ndcg@20", "pairs/accuracy")
    assert metrics["mean"] == pytest.approx(np.mean([metrics[name] for name in names]))
    output, source = tmp_path / "p.jsonl", f"words={files['dev']}"
    assert command("predict", model=tmp_path / "both", input=source, output=output)["rows"] == 41
    assert set(pd.read_json(output, lines=True).subtask) == {"words"}
    settings, both = ["num_steps=2", "learning_rate=1e-5"], tmp_path / "both"
    finetune(world, *files.values(), tmp_path / "one", *settings, init_from=both)
