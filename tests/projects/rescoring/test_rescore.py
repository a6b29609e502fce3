"""The verb `rescore` and its former spellings: n-best lists, and Kaldi's files."""

import json

import numpy as np
import pytest

from official.xlnet import cli
from official.xlnet.projects.rescoring.formats import kaldi_rows
from tests.helpers.wrong_input import run


def rows_of(capfd, *arguments):
    """JSON lines of standard output."""
    assert cli.main([*arguments]) == 0
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def refused(outcome):
    """The last line of a command that is refused; a former spelling is named in a line before."""
    assert outcome.status == 2
    return outcome.err.splitlines()[-1]


@pytest.mark.quick
def test_the_best_of_each_n_best_list_by_weights(capfd, world, tmp_path):
    """The first of equals; without weights, all hypotheses with their scores."""
    lists = [[("the cat", -1.5), ("a cat sat", -1), ("", -9)], [("in time", 0), ("in time", 0)]]
    lines = [
        {"id": f"u{n}", "hyps": [{"text": text, "am": am, "cost": -am} for text, am in hyps]}
        for n, hyps in enumerate(lists)
    ]
    (tmp_path / "a.nbest").write_text("".join(json.dumps(line) + "\n" for line in lines))
    nbest = ["score", f"--model={world.pretrained}", f"--input={tmp_path}/a.nbest"]
    [*rows, figures] = rows_of(capfd, *nbest, "--format=nbest")
    assert [row["utterance"] for row in rows] == [1, 1, 1, 2, 2] and figures["texts"] == 5
    assert [(row["text"], row["am"]) for row in rows] == [*lists[0], *lists[1]]
    for weights, lm in (("am:1", 0), ("cost:-1", 0), ("lm:-1e3,am:1", -1000)):
        [*best, _] = rows_of(capfd, *nbest, "--format=nbest", f"--weights={weights}")
        sums = [row["am"] + lm * row["log_likelihood"] for row in rows]
        expected = [np.argmax(sums[:3]), 3]
        assert [x["weighted"] for x in best] == pytest.approx([sums[n] for n in expected])
        assert [
            {**rows[n], "weighted": x["weighted"]} for n, x in zip(expected, best, strict=True)
        ] == best
    today = ["rescore", *nbest[1:], f"--weights={weights}"]
    assert rows_of(capfd, *today)[:-1] == best
    (tmp_path / "text").write_text("u1 the  cat \nu2\tsat\nu3\n")
    kaldi = ["score", f"--model={world.pretrained}", f"--input={tmp_path}/text", "--format=kaldi"]
    [*rows, _] = rows_of(capfd, *kaldi)
    assert [(row["id"], row["text"]) for row in rows] == [
        ("u1", "the  cat"),
        ("u2", "sat"),
        ("u3", ""),
    ]
    for flags, message in (
        (["--format=nbest", "--weights=am:x"], "weights: expected NAME:NUMBER, got 'am:x'"),
        (
            ["--format=nbest", "--weights=ac:1"],
            "hypothesis 1: expected a number of at most 1e+18 in 'ac', got the columns",
        ),
        (
            ["--format=nbest", "--weights=am:1,am:2"],
            "weights: expected each name once, got 'am' tw",
        ),
        (["--format=kaldi", "--weights=am:1"], "weights: expected format=nbest"),
        (["--format=json"], "format: expected one of kaldi, nbest, got 'json'"),
    ):
        assert message in refused(run(capfd, *nbest, *flags))
    assert "format: expected input from a file" in refused(
        run(capfd, "rescore", nbest[1], "--input=-")
    )
    for hyps in ([{"am": 1}], 3, ["the cat"], None):
        (tmp_path / "a.nbest").write_text(json.dumps({"id": "u1", "hyps": hyps}))
        sentence = refused(run(capfd, *nbest, "--format=nbest"))
        assert "row 1: expected a list 'hyps' of objects" in sentence, hyps
    (tmp_path / "text").write_text("u1 the cat\n\n")
    assert "line 2: expected an id and words, got a blank line" in refused(run(capfd, *kaldi))


@pytest.mark.parametrize("score", [float("nan"), float("inf"), True, "low", None])
def test_scores_that_are_not_finite_numbers_are_refused(score, capfd, world, tmp_path):
    """NaN would be the best if it came first."""
    hyps = [{"text": "the cat", "am": -1.5}, {"text": "sat", "am": score}]
    (tmp_path / "a.jsonl").write_text(json.dumps({"hyps": hyps}))
    flags = [f"--model={world.pretrained}", f"--input={tmp_path}/a.jsonl", "--weights=am:1"]
    sentence = refused(run(capfd, "rescore", *flags))
    assert "a.jsonl, " in sentence and "2" in sentence and "'am'" in sentence


@pytest.mark.parametrize(
    ("weights", "line"),
    [
        *[("am:1", {"hyps": [{name: -2}]}) for name in ("lm", "weighted", "tokens", "total")],
        ("am:1,length:1", {"hyps": [{"length": 2}]}),
        *[("", {"hyps": [{name: -2}]}) for name in ("log_likelihood", "only_unknown")],
        ("log_likelihood:1", {"hyps": [{"log_likelihood": -2}]}),
        ("", {"utterance": "u7", "hyps": [{}]}),
        ("", {"hyps": [{"utterance": "u7"}]}),
        ("", {"id": "u7", "hyps": [{"id": 3}]}),
    ],
)
def test_keys_that_would_be_overwritten_are_refused(weights, line, capfd, world, tmp_path):
    hyps = [{"text": "the cat", "am": -1, **hypothesis} for hypothesis in line["hyps"]]
    (tmp_path / "a.jsonl").write_text(json.dumps({**line, "hyps": hyps}))
    flags = [f"--model={world.pretrained}", f"--input={tmp_path}/a.jsonl"]
    if weights:
        flags.append(f"--weights={weights}")
    sentence = refused(run(capfd, "rescore", *flags))
    [name] = {*line, *line["hyps"][0]} - {"hyps"}
    assert f"got {name}; rename them" in sentence


def test_flags_of_scores_are_those_of_score(capfd, world, tmp_path):
    (tmp_path / "text").write_text("u1 The cat sat.\nu2 And then\n")
    flags = [f"--model={world.pretrained}", "--whole_given"]
    shared = {"order": "random", "num_orders": 2, "seed": 7, "given": "right"}
    shared["context"] = "It was late."
    flags += [f"--{name}={value}" for name, value in shared.items()]
    expected = rows_of(capfd, "score", *flags, "--text=The cat sat.", "--text=And then")
    output = tmp_path / "scores.jsonl"
    kaldi = [f"--input={tmp_path}/text", "--format=kaldi", f"--output={output}"]
    [figures] = rows_of(capfd, "rescore", *flags, *kaldi)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row.pop("id") for row in rows] == ["u1", "u2"]
    assert [*rows, figures] == expected


def test_length_has_a_weight_and_an_empty_list_has_no_best(capfd, world, tmp_path):
    lists = {"u1": ["", "the cat"], "u2": [], "u3": ["sat", "a cat sat in time"], "u4": []}
    lines = [
        {"id": name, "hyps": [{"text": text, "am": 0} for text in texts]}
        for name, texts in lists.items()
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    flags = [f"--model={world.pretrained}", f"--input={tmp_path}/a.jsonl"]
    [*rows, _] = rows_of(capfd, "rescore", *flags)
    assert [row["id"] for row in rows] == ["u1", "u1", "u3", "u3"]
    for weight in (0, 50):
        [*best, _] = rows_of(capfd, "rescore", *flags, f"--weights=lm:1,length:{weight}")
        assert [row["id"] for row in best] == [*lists]
        assert best[1] == {"utterance": 2, "id": "u2", "weighted": None}
        sums = [row["total"] + weight * len(row["tokens"]) for row in rows]
        assert best[0]["weighted"] == pytest.approx(max(sums[:2]))
        assert best[2]["weighted"] == pytest.approx(max(sums[2:]))
        assert best[0]["text"] == ("the cat" if weight else "")


def test_dropped_words_are_not_scored(capfd, world, tmp_path):
    texts = ["<eps> the [laughter] cat", "the cat", "<eps>", "the<eps>cat"]
    (tmp_path / "text").write_text("".join(f"u {text}\n" for text in texts))
    flags = [f"--model={world.pretrained}", f"--input={tmp_path}/text", "--format=kaldi"]
    [*rows, counts] = rows_of(capfd, "rescore", *flags, "--drop=<eps>,[laughter]")
    assert [row["text"] for row in rows] == texts
    assert rows[0]["total"] == rows[1]["total"] and rows[0]["tokens"] == rows[1]["tokens"]
    assert rows[2]["tokens"] == [] and rows[3]["tokens"] != rows[1]["tokens"]
    assert counts["tokens"] == sum(len(row["tokens"]) for row in rows)


@pytest.mark.parametrize("name", ["u\u30001", "u\xa01", "\u2003u1", "u1\u3000"])
def test_only_white_space_of_ascii_ends_an_id(name, tmp_path):
    (tmp_path / "text").write_text(f" {name} \tthe\u3000cat\n{name}\n")
    assert [*kaldi_rows(str(tmp_path / "text"))] == [
        {"id": name, "text": "the\u3000cat"},
        {"id": name, "text": ""},
    ]
