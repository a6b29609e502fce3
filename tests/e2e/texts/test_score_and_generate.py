"""`xlnet score` and `xlnet generate` on a model directory, through the command line."""

import json

import pytest

from official import xlnet
from official.xlnet import cli
from tests.helpers.wrong_input import refused, run

pytestmark = pytest.mark.usefixtures("eager")


def rows_of(capfd, *arguments):
    """JSON lines of standard output."""
    assert cli.main([*arguments]) == 0
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def test_score_prints_texts_and_totals(capfd, world, tmp_path):
    (tmp_path / "texts.txt").write_text("The cat sat.\n\nA longer text: it goes on, and on.\n")
    arguments = ["score", f"--model={world.pretrained}", f"--input={tmp_path / 'texts.txt'}"]
    [*rows, figures] = rows_of(capfd, *arguments, "--text=First")
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


def test_texts_of_unknown_tokens_alone_are_marked(capfd, world):
    arguments = ["score", f"--model={world.pretrained}"]
    texts = ["\u2603", "the \u2603", "\u2603\u2604 \u2605", ""]
    [*rows, figures] = rows_of(capfd, *arguments, *(f"--text={text}" for text in texts))
    assert [row.get("only_unknown", False) for row in rows] == [True, False, True, False]
    assert figures["only_unknown"] == 2


def test_a_context_is_given_and_not_scored(capfd, world):
    arguments = ["score", f"--model={world.pretrained}"]

    def total(*more):
        [row, _] = rows_of(capfd, *arguments, *more)
        return row["total"]

    both = total("--text=The cat sat.")
    assert total("--text=The cat") + total("--text=sat.", "--context=The cat") == pytest.approx(
        both
    )
    right = total("--text=The cat", "--context=sat.", "--given=right")
    around = total("--text=The cat", "--context=____ sat.", "--given=both")
    assert right == pytest.approx(around) and right != pytest.approx(total("--text=The cat"))
    assert total("--text=The", "--context=cat", "--whole_given") == pytest.approx(
        total("--text=The", "--context=cat")  # The network has one layer.
    )


def test_generate_continues_and_fills_in(capfd, world):
    texts = ["The ____ sat", "Once upon a", "____{2} and ____."]
    options = {"top_k": 20, "top_p": 0.9, "seed": 5, "max_blank_length": 2}
    flags = {"model": world.pretrained, "num_tokens": 5, **options}
    arguments = [f"--{name}={value}" for name, value in flags.items()]
    arguments += [f"--text={text}" for text in texts]
    [*rows, figures] = rows_of(capfd, "generate", *arguments)
    assert (figures["continued"], figures["filled"]) == (1, 2)
    outputs = [row["output"] for row in rows]
    assert outputs[0].startswith("The ") and outputs[0].endswith(" sat")
    assert outputs[1].startswith("Once upon a")
    assert " and " in outputs[2] and "____" not in "".join(outputs)
    assert outputs == xlnet.generate(world.pretrained, texts, 5, **options)


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
def test_wrong_input_is_one_sentence(capfd, world, verb, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin1.txt").write_bytes(b"Z\xfcrich\n")
    model = [] if "--model=nowhere" in arguments else [f"--model={world.pretrained}"]
    assert message in refused(run(capfd, verb, *model, *arguments))


@pytest.mark.parametrize(
    ("row", "flags", "message"),
    [
        ({"text": "a", "context": 3}, [], "row 1: expected a string 'context', got 3"),
        ({"text": 3}, [], "row 1: expected a string 'text', got 3"),
        ({"texts": "a"}, [], "row 1: expected a string 'text', got the columns texts; did you"),
        ({"text": "a"}, ["--unit=bits"], "unknown flag --unit"),
        ({"text": "a"}, ["--group=text"], "unknown flag --group"),
    ],
)
def test_columns_that_do_not_fit_are_one_sentence(row, flags, message, capfd, world, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    flags = [f"--model={world.pretrained}", f"--input={tmp_path}/a.jsonl", *flags]
    assert message in refused(run(capfd, "score", *flags))
