"""The tutorials of the documentation run as they are printed there."""

import json
import pydoc_data.topics
import re
import runpy

import pytest
import yaml

from tests.e2e.test_document_commands import shrink, xlnet
from tests.helpers.corpora import UDHR
from tests.helpers.documents import ROOT, blocks, commands

pytestmark = pytest.mark.slow

SIZE = 800  # Pieces that the text has enough for.


def test_tutorial_runs(tmp_path, monkeypatch, capsys):
    """With a tiny recipe in place of the one that it reads, and a fifth of the text."""
    topics = dict(list(pydoc_data.topics.topics.items())[::5])
    monkeypatch.setattr(pydoc_data.topics, "topics", topics)
    script = ROOT / "docs/tutorial.py"
    [recipe] = re.findall(r'"(configs/.*\.yaml)"', script.read_text())
    shrink(ROOT / recipe, tmp_path / recipe)
    tree = yaml.safe_load((tmp_path / recipe).read_text())
    tree["model"]["num_layers"] = 1
    (tmp_path / recipe).write_text(yaml.safe_dump(tree))
    monkeypatch.chdir(tmp_path)
    values = runpy.run_path(str(script))
    assert values["metrics"]["step"] == 30 and values["content"].shape[-1] == 16
    printed = capsys.readouterr().out
    assert "unigram_loss" in printed and "guesses" in printed


@pytest.mark.skipif(not UDHR.is_dir(), reason="real text is not part of the clone")
def test_chinese_tutorial_runs_on_real_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus/zh").mkdir(parents=True)
    (tmp_path / "corpus/zh/udhr.txt").write_text((UDHR / "zh.txt").read_text())
    shrink(ROOT / "configs/tiny.yaml", tmp_path / "configs/tiny.yaml")
    path = tmp_path / "configs/tiny.yaml"
    recipe = yaml.safe_load(path.read_text())
    recipe["model"]["vocab_size"] = SIZE
    recipe["training"] |= {"num_steps": 60, "learning_rate": 0.01, "checkpoint_steps": 60}
    path.write_text(yaml.safe_dump(recipe))
    results, values = {}, {}
    for block in blocks(ROOT / "docs/languages.md"):
        if block.language == "python":
            exec(compile(block.code, f"languages.md:{block.line}", "exec"), values)
        elif block.language == "sh":
            for words in commands(block):
                words = [re.sub(r"--size=\d+", f"--size={SIZE}", word) for word in words]
                xlnet(*words[1:])
                lines = capsys.readouterr().out.splitlines()
                results[words[1]] = json.loads(lines[-1]) if words[1] != "inspect" else lines
    assert results["vocab"] == {"vocab_size": SIZE, "coverage": 1.0}
    assert results["prepare"]["targets_per_window"] > 4.9
    shown = "\n".join(results["inspect"])
    assert re.search(r"\[[\u4e00-\u9fff]+ \d+\]", shown)
    assert results["evaluate"]["loss"] < results["evaluate"]["unigram_loss"]
    assert values["text"].startswith("人人有权享有生命、") and "____" not in values["text"]
    assert values["vectors"].shape == (2, 16) and values["label"] in ("right", "duty")
