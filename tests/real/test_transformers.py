"""Folders that transformers 5 and 4 write are read here, and ours there, by each one's defaults."""

import json
import os

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

pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = pytest.mark.slow
WITH_PIPELINE = (*PREDICTED, "encoder", "token_classification")


@pytest.mark.nightly
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


def answers(folder, name):
    return json.loads((folder / name / "answer.json").read_text())


def _check_ours_there(folder):
    """Nothing is missing or unexpected, and labels have their names."""
    found = answers(folder, "read")
    assert found.keys() == TEXTS.keys() and not any(x["info"] for x in found.values())
    for kind in ("classification", "pairs", "multi_label", "token_classification"):
        assert found[kind]["labels"] == ["bad", "fair", "good"]
