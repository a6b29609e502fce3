"""The line for people before the JSON of a command."""

import io
import json

import pytest

from official.xlnet import cli
from official.xlnet.commands.summary_line import summary_line
from official.xlnet.configs.registry import VERBS
from official.xlnet.runtime import progress


@pytest.mark.parametrize(
    ("result", "output", "line"),
    [
        (
            {"documents": 12, "windows": 19440, "x": 3},
            "d",
            "done: 12 documents, 19,440 windows, in d",
        ),
        (
            {"rows": 0, "texts": 3, "loss": 4.25, "perplexity": None},
            "-",
            "done: 3 texts, loss 4.25",
        ),
        ({"step": 40, "steps": 60, "accuracy": 0.5}, "-", "done: 60 steps, accuracy 0.5"),
        ({"texts": 1, "continued": 1}, "-", "done: 1 text, 1 text continued"),
        ({"accuracy": True, "left_over": []}, "d", ""),
        ([{"rows": 3}], "d", ""),
    ],
)
def test_counts_of_a_result_are_said(result, output, line):
    assert summary_line(result, {"output": output}) == line


def test_it_is_the_last_line_of_the_log_before_the_json(capsys):
    cli._show_result(VERBS["predict"], {"rows": 7}, {"output": "-"})
    line, result = capsys.readouterr().err.splitlines()
    assert line == "done: 7 rows" and json.loads(result) == {"rows": 7}
    cli._show_result(VERBS["predict"], {"rows": 7}, {"output": "a\nb"})
    out, error = capsys.readouterr()
    assert error == "done: 7 rows, in a\\u000ab\n" and json.loads(out) == {"rows": 7}


def test_a_log_says_what_was_counted(monkeypatch):
    """Where there is no bar, once the block takes longer than a log may be silent."""
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.0)
    log = io.StringIO()
    monkeypatch.setattr("sys.stderr", log)
    with progress.counting(True, "tokens", 4000, "B") as add:
        add(1000)
    with progress.counting(False, "silent", 4000, "B") as add:
        add(1000)
    lines = log.getvalue().splitlines()
    assert lines and lines[-1] == "tokens: 25% of 4,000 B: 0 s"
    assert "silent" not in log.getvalue()
