"""Folders that transformers 5 and 4 write are read here, and ours there, by each one's defaults."""

import json
import os

import numpy as np
import pytest

from benchmarks.inference.transformers_folders import (
    CALLS,
    DIRECTIONS,
    PREDICTED,
    PYTHONS,
    TEXTS,
    compare,
)
from official import xlnet
from official.xlnet.tasks.question_answering import QuestionExample

pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = pytest.mark.slow
WITH_PIPELINE = (*PREDICTED, "encoder", "token_classification")


@pytest.mark.parametrize("version", PYTHONS)
def test_folders_there_and_here(version, world, tmp_path, caplog):
    """Ids, segments, padding, weights and heads; `pipeline` and `predict` by their defaults."""
    if not os.path.isfile(PYTHONS[version]):
        pytest.skip("XLNET_HF4_PYTHON names no interpreter")
    differences = dict(compare(version, tmp_path, world.vocab))
    expected = {(kind, way, "model") for kind in TEXTS for way in DIRECTIONS}
    expected |= {(kind, way, "pipeline") for kind in WITH_PIPELINE for way in DIRECTIONS}
    assert differences.keys() == expected and {call for *_, call in expected} == {*CALLS}
    assert {cell: value for cell, value in differences.items() if not value < 1e-4} == {}
    caplog.clear()
    for kind in TEXTS:
        xlnet.load_config(f"{tmp_path}/theirs/{kind}")
    assert [r.getMessage() for r in caplog.records if "does not use" in r.getMessage()] == []
    _check_ours_there(tmp_path)
    _check_simple_answers(tmp_path)


def answers(folder, name):
    return json.loads((folder / name / "answer.json").read_text())


def _check_ours_there(folder):
    """Nothing is missing or unexpected, and labels have their names."""
    found = answers(folder, "read")
    assert found.keys() == TEXTS.keys() and not any(x["info"] for x in found.values())
    for kind in ("classification", "pairs", "multi_label", "token_classification"):
        assert found[kind]["labels"] == ["bad", "fair", "good"]


def _check_simple_answers(folder):
    """The best span of all pairs of what HF's logits say of the paragraph, with CLS beside it."""
    tokenizer = xlnet.load_tokenizer(f"{folder}/theirs/simple_answers")
    rows = [
        {"id": str(n), "question": question, "context": context}
        for n, (context, question) in enumerate(zip(*TEXTS["simple_answers"], strict=True))
    ]
    found = xlnet.predict(
        f"{folder}/theirs/simple_answers", [QuestionExample(**row) for row in rows]
    )
    logits = answers(folder, "theirs")["simple_answers"]["spans"]
    for row, starts, ends, answer in zip(rows, *logits, found, strict=True):
        ids, places = tokenizer.encode_with_offsets(row["context"])
        length = len(ids) + len(tokenizer.encode(row["question"])) + 3
        logs = np.array([starts, ends])[:, -length:]
        logs = logs[:, [*range(len(ids)), -1]]
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        places_of = range(len(ids))
        score, i, j = max((logs[0, i] + logs[1, j], i, j) for i in places_of for j in places_of[i:])
        assert answer["best_span"] == row["context"][places[i][0] : places[j][1]]
        np.testing.assert_allclose(answer["n_best"][0]["log_probability"], score, atol=1e-4)
