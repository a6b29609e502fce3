"""The line for people before the JSON of a command."""

import inspect
import io
import json

import pytest

from official.xlnet import cli
from official.xlnet.api.verbs import USUAL_COUNTS, Verb
from official.xlnet.commands.summary_line import summary_line
from official.xlnet.configs.registry import VERBS
from official.xlnet.runtime import progress
from tests.helpers.package.of_projects import rows


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
        ({"accuracy": True, "left_over": []}, "d", ""),
        ([{"rows": 3}], "d", ""),
    ],
)
def test_counts_of_a_result_are_said(result, output, line):
    assert summary_line(result, {"output": output}) == line


@pytest.mark.parametrize(
    ("verb", "result", "line"),
    [
        ("generate", {"texts": 1, "continued": 1}, "done: 1 text, 1 text continued"),
        ("vocab", {"vocab_size": 4000, "coverage": 0.9}, "done: 4,000 pieces"),
        ("convert", {"variables": 7, "parameters": 1}, "done: 7 variables, 1 parameter"),
        ("export", {"bytes": 1234}, "done: 1,234 bytes"),
        ("predict", {"vocab_size": 4000}, ""),  # What another verb counts.
        *rows("COUNTED"),
    ],
)
def test_a_verb_owns_what_it_alone_counts(verb, result, line):
    assert summary_line(result, {}, VERBS[verb].counts) == line


def test_a_verb_of_another_package_says_what_it_counts(capsys):
    def watch(output: str) -> dict[str, int]:
        """Watches films."""

    verb = Verb("watch", watch, "", "Others", {}, None, {"films": "films watched"}, None)
    cli._show_result(verb, {"films": 1, "rows": 3}, {"output": "-"})
    line, _ = capsys.readouterr().err.splitlines()
    assert line == "done: 3 rows, 1 film watched"


@pytest.mark.parametrize("verb", VERBS.names())
def test_what_is_counted_is_in_the_description_of_the_result(verb):
    returns = inspect.getdoc(VERBS[verb].function).partition("\nReturns:\n")[2]
    assert not VERBS[verb].counts.keys() & USUAL_COUNTS.keys()
    missing = [key for key in VERBS[verb].counts if key not in returns]
    assert not missing, f"`Returns:` of {verb} does not describe {missing}"


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
