"""BERT against XLNet: the table, and that finished runs are not repeated."""

import json
import pathlib
import shutil
import sys

import numpy as np
import pytest

from benchmarks.harness.document import fill_table
from benchmarks.learning import ablation, rivals
from benchmarks.learning.rivals import Run
from benchmarks.learning.span_likelihood import choose_token
from tests.helpers.documents import ROOT


def made_up_run(span, accuracy=None):
    run = {
        "seconds_per_step": 0.1,
        "span_losses": {"span": span, "first": 3.0, "later": 1.5},
        "training_loss": [9.0] * 19 + [4.0],
        "token_loss": 2.5,
    }
    return run | ({} if accuracy is None else {"accuracy": {"sst2": accuracy}})


def test_tables(tmp_path):
    results = {
        Run("bert", 600, 1e-3, 0): made_up_run(7.0),
        Run("bert", 600, 3e-3, 0): made_up_run(6.0, 0.60),
        Run("bert", 6000, 1e-3, 0): made_up_run(4.0, 0.65),
        Run("xlnet_k6", 600, 1e-3, 0): made_up_run(5.0, 0.70),
        Run("bert", 600, 3e-3, 1): made_up_run(6.2, 0.64),
    }
    shutil.copy(ROOT / "docs/rivals.md", tmp_path / "page.md")
    table, rates = rivals.table_of(results, {"sst2": 0.5}), rivals.rates_table_of(results)
    fill_table(str(tmp_path / "page.md"), "rivals", table)
    fill_table(str(tmp_path / "page.md"), "rates", rates)
    titles = (
        "steps | rate | seeds | training loss | token | span | first token | later tokens | sst2"
    )
    assert table.splitlines() == [
        f"|  | {titles} | ms per step |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        "| BERT | 600 | 0.003 | 2 | 4.00 ± 0.00 | 2.500 ± 0.000 | 6.100 ± 0.141 | 3.000 ± 0.000"
        " | 1.500 ± 0.000 | 62.0 ± 2.8 | 100 |",
        "| BERT | 6,000 | 0.001 | 1 | 4.00 | 2.500 | 4.000 | 3.000 | 1.500 | 65.0 | 100 |",
        "| XLNet, K = 6 | 600 | 0.001 | 1 | 4.00 | 2.500 | 5.000 | 3.000 | 1.500 | 70.0 | 100 |",
        "| most frequent label |  |  |  |  |  |  |  |  | 50.0 |  |",
    ]
    assert rates.splitlines() == [
        "|  | steps | 0.001 | 0.003 |",
        "| --- | --- | --- | --- |",
        "| BERT | 600 | 7.000 | 6.000 |",
        "| BERT | 6,000 | 4.000 |  |",
        "| XLNet, K = 6 | 600 | 5.000 |  |",
    ]


def test_settings_of_a_run():
    assert Run("bert", 600, 1e-3, 2).name == "bert-600-0.001-2"
    settings = Run("bert", 600, 1e-3, 2).settings
    config = ablation.configuration("bert", settings, 2)
    training = config.training
    assert (training.num_steps, training.warmup_steps, training.seed) == (600, 60, 2)
    assert (training.learning_rate, config.model.init_std) == (1e-3, 0.02)


def test_the_first_seed_tries_every_rate_and_the_others_its_best(tmp_path, monkeypatch, capsys):
    trained, finetuned = [], []

    def train(row, seed, output, settings, model_dir):
        run = pathlib.Path(model_dir).name
        trained.append(run)
        return made_up_run({"bert-20-0.001-0": 3.0, "xlnet_k6-20-0.003-0": 4.0}.get(run, 5.0))

    def accuracy(model, tables, output, overrides):
        finetuned.append(pathlib.Path(model).name)
        return 0.5

    (tmp_path / "sst2").mkdir()
    (tmp_path / "sst2/dev.tsv").write_text("label\ttext\n1\ta\n")
    monkeypatch.setattr(ablation, "prepare_data", lambda *_: None)
    monkeypatch.setattr(ablation, "trained", train)
    monkeypatch.setattr(rivals, "accuracy", accuracy)
    command = ["rivals", "--text=x", f"--data={tmp_path}", f"--output={tmp_path / 'out'}"]
    command += ["--tasks=sst2", "--steps=20", "--rates=1e-3,3e-3", "--seeds=2"]
    command += ["--rows=bert,xlnet_k6"]
    monkeypatch.setattr(sys, "argv", command)
    rivals.main()
    tried = [f"{row}-20-{rate}-0" for row in ("bert", "xlnet_k6") for rate in (0.001, 0.003)]
    assert trained == [*tried, "bert-20-0.001-1", "xlnet_k6-20-0.003-1"]
    best = ["bert-20-0.001-0", "xlnet_k6-20-0.003-0", "bert-20-0.001-1", "xlnet_k6-20-0.003-1"]
    assert finetuned == best
    first = capsys.readouterr()
    # Without time, what is finished is read, and nothing else begun.
    monkeypatch.setattr(sys, "argv", [*command, "--seeds=3", "--minutes=1e-9"])
    rivals.main()
    assert (len(trained), len(finetuned)) == (6, 4)
    assert capsys.readouterr().out.splitlines()[-1] == first.out.splitlines()[-1]


def test_the_loss_of_a_token_is_added_to_a_finished_run(tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    run = Run("bert", 600, 1e-3, 1)
    path = tmp_path / f"runs/{run.name}.json"
    path.write_text(json.dumps({"span_losses": {"span": 2.0}}))
    losses = np.array([[1.0, np.nan], [4.0, np.nan], [np.nan, np.nan]])

    def spans_of(model_dir, data_dir, choose):
        assert choose is choose_token and pathlib.Path(data_dir).name == "forward"
        return losses

    monkeypatch.setattr(ablation, "spans_of", spans_of)
    assert rivals.trained(run, str(tmp_path), [])["token_loss"] == 2.5
    assert json.loads(path.read_text())["token_loss"] == 2.5


def test_majority(tmp_path):
    (tmp_path / "dev.tsv").write_text("label\ttext\n1\ta\n0\tb\n1\tc\n1\td\n")
    assert rivals.majority(str(tmp_path / "dev.tsv")) == pytest.approx(0.75)


MADE_UP = {"span_losses": {"span": 2.0}, "token_loss": 3.0}


def test_only_what_is_missing_is_run(tmp_path, monkeypatch):
    for name in ("runs", "accuracy"):
        (tmp_path / name).mkdir()
    run = Run("bert", 600, 1e-3, 1)
    (tmp_path / f"runs/{run.name}.json").write_text(json.dumps(MADE_UP))
    (tmp_path / f"accuracy/{run.name}.json").write_text(json.dumps({"cr": 0.6}))
    asked = []

    def accuracy(model, tables, output, overrides):
        asked.append((model, tables, output, overrides[-1]))
        return 0.7

    monkeypatch.setattr(rivals, "accuracy", accuracy)
    for _ in range(2):
        result = rivals.trained(run, str(tmp_path), [])
        rivals.finetune(run, result, str(tmp_path), {"cr": ["a", "b"], "sst2": ["c", "d"]})
        assert result == {**MADE_UP, "accuracy": {"cr": 0.6, "sst2": 0.7}}
    model = f"{tmp_path}/models/{run.name}"
    assert asked == [(model, ["c", "d"], f"{model}-sst2", "training.seed=1")]
