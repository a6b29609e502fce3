"""The commands of docs/languages.md on real Chinese text."""

import json
import re
import shlex

import pytest

from tests.e2e.test_document_commands import shrink, xlnet
from tests.helpers.documents import ROOT, blocks, commands
from tests.helpers.languages import UDHR

SIZE = 800  # Pieces that the text has enough for.


@pytest.mark.skipif(not UDHR.is_dir(), reason="real text is not part of the clone")
def test_commands_run_on_real_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus/zh").mkdir(parents=True)
    (tmp_path / "corpus/zh/udhr.txt").write_text((UDHR / "zh.txt").read_text())
    shrink(ROOT / "configs/tiny.yaml", tmp_path / "configs/tiny.yaml")
    path = tmp_path / "configs/tiny.yaml"
    steps = {"vocab_size: 300": f"vocab_size: {SIZE}", "num_steps: 3": "num_steps: 60"}
    recipe = path.read_text()
    for found, replacement in steps.items():
        assert found in recipe
        recipe = recipe.replace(found, replacement)
    path.write_text(recipe + "  learning_rate: 0.01\n")
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
    assert re.search(r"\[[\u4e00-\u9fff]+ \d+\]", shown), shlex.join(results["inspect"])
    assert results["evaluate"]["loss"] < results["evaluate"]["unigram_loss"]
    assert values["text"].startswith("人人有权享有生命、") and "____" not in values["text"]
    assert values["vectors"].shape == (2, 16) and values["label"] in ("right", "duty")
