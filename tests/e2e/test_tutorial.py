"""The tutorial of the documentation runs as it is printed there."""

import runpy

from tests.helpers.documents import ROOT


def test_tutorial_runs(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    values = runpy.run_path(str(ROOT / "docs/tutorial.py"))
    assert values["metrics"]["step"] == 30 and values["content"].shape[-1] == 96
    printed = capsys.readouterr().out
    assert "unigram_loss" in printed and "guesses" in printed
