"""`xlnet score` and `xlnet generate` on a model directory, through the command line."""

import json

import pytest

from official.xlnet import cli


def run(capsys, *arguments):
    """Exit status, JSON lines of standard output, standard error."""
    status = cli.main(list(arguments))
    captured = capsys.readouterr()
    return status, [json.loads(line) for line in captured.out.splitlines()], captured.err


def test_score_prints_texts_and_totals(capsys, world, tmp_path):
    (tmp_path / "texts.txt").write_text("The cat sat.\n\nA longer text: it goes on, and on.\n")
    arguments = ["score", f"--model={world.pretrained}", f"--input={tmp_path / 'texts.txt'}"]
    status, [*rows, figures], _ = run(capsys, *arguments, "--text=First")
    assert status == 0
    assert [row["text"] for row in rows] == [
        "First",
        "The cat sat.",
        "",
        "A longer text: it goes on, and on.",
    ]
    assert figures["texts"] == 4
    assert figures["tokens"] == sum(len(row["tokens"]) for row in rows)
    assert all(len(row["tokens"]) == len(row["log_likelihoods"]) for row in rows)
    assert figures["log_likelihood"] == pytest.approx(sum(row["total"] for row in rows))
    for row in rows:
        assert row["total"] == pytest.approx(sum(row["log_likelihoods"]))
    output = tmp_path / "scores.jsonl"
    for order in ("random", "pseudo"):
        options = [f"--order={order}", "--num_orders=2", f"--output={output}"]
        status, [figures], _ = run(capsys, *arguments, *options)
        total = sum(json.loads(line)["total"] for line in output.read_text().splitlines())
        assert status == 0 and figures["log_likelihood"] == pytest.approx(total)


def test_generate_continues_and_fills_in(capsys, world):
    arguments = ["generate", f"--model={world.pretrained}", "--num_tokens=5", "--top_k=20"]
    texts = ["--text=The ____ sat", "--text=Once upon a", "--text=____{2} and ____."]
    status, [*rows, figures], _ = run(capsys, *arguments, *texts, "--max_blank_length=2")
    assert status == 0
    assert (figures["continued"], figures["filled"]) == (1, 2)
    outputs = [row["output"] for row in rows]
    assert outputs[0].startswith("The ") and outputs[0].endswith(" sat")
    assert outputs[1].startswith("Once upon a")
    assert " and " in outputs[2] and "____" not in "".join(outputs)


@pytest.mark.parametrize("verb", ["score", "generate"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected at least one text"),
        (["--input=latin1.txt"], "expected UTF-8"),
        (["--input=nowhere.txt"], "nowhere.txt"),
        (["--model=nowhere", "--text=a"], "no configuration"),
    ],
)
def test_wrong_input_is_one_sentence(
    capsys, world, verb, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin1.txt").write_bytes(b"Z\xfcrich\n")
    status, rows, error = run(capsys, verb, f"--model={world.pretrained}", *arguments)
    assert (status, rows, error.count("\n")) == (2, [], 1) and message in error
