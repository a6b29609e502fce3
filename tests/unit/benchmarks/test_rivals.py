"""BERT against XLNet: the table, and that finished runs are not repeated."""

import json
import shutil

import pytest

from benchmarks.harness.document import fill_table
from benchmarks.learning import rivals
from tests.helpers.documents import ROOT


def made_up_run(span, accuracy):
    return {
        "seconds_per_step": 0.1,
        "span_losses": {"span": span, "first": 3.0, "later": 1.5},
        "accuracy": {"sst2": accuracy},
    }


def test_table(tmp_path):
    results = {
        "bert": [made_up_run(6.0, 0.60), made_up_run(6.2, 0.64)],
        "roberta": [],
        "xlnet_k6": [made_up_run(5.0, 0.70)],
    }
    shutil.copy(ROOT / "docs/rivals.md", tmp_path / "page.md")
    table = rivals.table_of(results, {"sst2": 0.5})
    fill_table(str(tmp_path / "page.md"), "rivals", table)
    page = (tmp_path / "page.md").read_text()
    assert "|  | seeds | span | first token | later tokens | sst2 | ms per step |" in page
    row = "| BERT | 2 | 6.100 ± 0.141 | 3.000 ± 0.000 | 1.500 ± 0.000 | 62.0 ± 2.8 | 100 |"
    assert row in page
    assert "| XLNet, K = 6 | 1 | 5.000 | 3.000 | 1.500 | 70.0 | 100 |" in page
    assert "| most frequent label |  |  |  |  | 50.0 |  |" in page
    assert "RoBERTa's setting" not in table


def test_majority(tmp_path):
    (tmp_path / "dev.tsv").write_text("label\ttext\n1\ta\n0\tb\n1\tc\n1\td\n")
    assert rivals.majority(str(tmp_path / "dev.tsv")) == pytest.approx(0.75)


def test_only_what_is_missing_is_run(tmp_path, monkeypatch):
    for name in ("runs", "accuracy"):
        (tmp_path / name).mkdir()
    (tmp_path / "runs/bert-1.json").write_text(json.dumps({"span_losses": {"span": 2.0}}))
    (tmp_path / "accuracy/bert-1.json").write_text(json.dumps({"cr": 0.6}))
    asked = []

    def accuracy(model, tables, output, overrides):
        asked.append((model, tables, output, overrides[-1]))
        return 0.7

    monkeypatch.setattr(rivals, "accuracy", accuracy)
    for _ in range(2):
        result = rivals.run("bert", 1, str(tmp_path), [], {"cr": ["a", "b"], "sst2": ["c", "d"]})
        assert result["accuracy"] == {"cr": 0.6, "sst2": 0.7}
    model = f"{tmp_path}/models/bert-1"
    assert asked == [(model, ["c", "d"], f"{model}-sst2", "training.seed=1")]
