"""`xlnet score` and `xlnet generate` on a model directory, through the command line."""

import json

import numpy as np
import pandas as pd
import pytest

from official import xlnet
from official.xlnet import cli
from tests.helpers.wrong_input import refused, run


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


TABLES = {
    "a.parquet": lambda frame, path: frame.to_parquet(path),
    "a.csv": lambda frame, path: frame.to_csv(path, index=False),
    "a.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t", quoting=3),
    "a.jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "a.json": lambda frame, path: frame.to_json(path, orient="records"),
}
READERS = {
    "tsv": lambda path: pd.read_csv(path, sep="\t", quoting=3),
    "csv": pd.read_csv,
    "jsonl": lambda path: pd.read_json(path, lines=True),
    "parquet": pd.read_parquet,
}


@pytest.mark.parametrize(("name", "ending"), zip(TABLES, [*READERS, "tsv"], strict=True))
def test_words_come_with_the_columns_of_the_input(capfd, world, tmp_path, name, ending):
    """Dates too, which JSON does not have."""
    source, output = tmp_path / name, tmp_path / f"words.{ending}"
    texts = ['"The cat" sat, so.', "And then"]
    frame = pd.DataFrame({"id": ["a7", "b1"], "text": texts, "context": ["It was late.", ""]})
    TABLES[name](frame.assign(day=pd.Timestamp("2026-11-27")), source)
    arguments = ["score", f"--model={world.pretrained}", f"--input={source}"]
    [*rows, _] = rows_of(capfd, *arguments)
    assert [row["id"] for row in rows] == ["a7", "b1"]
    [figures] = rows_of(capfd, *arguments, "--words", "--unit=bits", f"--output={output}")
    words = READERS[ending](output)
    assert words["word"].tolist() == ['"The', 'cat"', "sat,", "so.", "And", "then"]
    alone = ["--words", "--punctuation=alone", f"--output={tmp_path}/alone.jsonl"]
    rows_of(capfd, *arguments, *alone)
    found = pd.read_json(tmp_path / "alone.jsonl", lines=True)["word"].tolist()
    assert found == ['"', "The", "cat", '"', "sat", ",", "so", ".", "And", "then"]
    assert words["id"].tolist() == ["a7"] * 4 + ["b1"] * 2 and "day" in words
    assert words["text_id"].tolist() == [1] * 4 + [2] * 2
    for row in words.to_dict("records"):
        assert texts[row["text_id"] - 1][row["start"] : row["end"]] == row["word"]
    totals = words.groupby("text_id")["surprisal"].sum().tolist()
    assert totals == pytest.approx([-row["total"] / np.log(2) for row in rows])
    assert words["pieces"].sum() == figures["tokens"] == sum(len(row["tokens"]) for row in rows)


def test_the_best_of_each_n_best_list_by_weights(capfd, world, tmp_path):
    """The first of equals; without weights, all hypotheses with their scores."""
    lists = [[("the cat", -1.5), ("a cat sat", -1), ("", -9)], [("in time", 0), ("in time", 0)]]
    lines = [
        # A score of theirs may have the name of one of ours.
        {"id": f"u{n}", "hyps": [{"text": text, "am": am, "total": -am} for text, am in hyps]}
        for n, hyps in enumerate(lists)
    ]
    (tmp_path / "a.nbest").write_text("".join(json.dumps(line) + "\n" for line in lines))
    nbest = ["score", f"--model={world.pretrained}", f"--input={tmp_path}/a.nbest"]
    [*rows, figures] = rows_of(capfd, *nbest, "--format=nbest")
    assert [row["utterance"] for row in rows] == [1, 1, 1, 2, 2] and figures["texts"] == 5
    assert [(row["text"], row["am"]) for row in rows] == [*lists[0], *lists[1]]
    for weights, lm in (("am:1", 0), ("total:-1", 0), ("lm:-1e3,am:1", -1000)):
        [*best, _] = rows_of(capfd, *nbest, "--format=nbest", f"--weights={weights}")
        sums = [row["am"] + lm * row["log_likelihood"] for row in rows]
        expected = [np.argmax(sums[:3]), 3]
        assert [x["weighted"] for x in best] == pytest.approx([sums[n] for n in expected])
        assert [
            {**rows[n], "weighted": x["weighted"]} for n, x in zip(expected, best, strict=True)
        ] == best
    (tmp_path / "text").write_text("u1 the  cat \nu2\tsat\nu3\n")
    kaldi = ["score", f"--model={world.pretrained}", f"--input={tmp_path}/text", "--format=kaldi"]
    [*rows, _] = rows_of(capfd, *kaldi)
    assert [(row["id"], row["text"]) for row in rows] == [
        ("u1", "the  cat"),
        ("u2", "sat"),
        ("u3", ""),
    ]
    for flags, message in (
        (["--weights=am:1"], "weights: expected format=nbest"),
        (["--format=nbest", "--weights=am:x"], "weights: expected NAME:NUMBER, got 'am:x'"),
        (
            ["--format=nbest", "--weights=ac:1"],
            "hypothesis 1: expected a number 'ac', got the keys",
        ),
        (["--format=nbest", "--pairs"], "pairs: expected input from a file"),
    ):
        assert message in refused(run(capfd, *nbest, *flags))
    for hyps in ([{"am": 1}], [], 3, ["the cat"], None):
        (tmp_path / "a.nbest").write_text(json.dumps({"id": "u1", "hyps": hyps}))
        sentence = refused(run(capfd, *nbest, "--format=nbest"))
        assert "row 1: expected a list 'hyps' of objects" in sentence, hyps
    (tmp_path / "text").write_text("u1 the cat\n\n")
    assert "line 2: expected an id and words, got a blank line" in refused(run(capfd, *kaldi))


def test_texts_of_unknown_tokens_alone_are_marked(capfd, world, tmp_path):
    arguments = ["score", f"--model={world.pretrained}"]
    texts = ["\u2603", "the \u2603", "\u2603\u2604 \u2605", ""]
    [*rows, figures] = rows_of(capfd, *arguments, *(f"--text={text}" for text in texts))
    assert [row.get("only_unknown", False) for row in rows] == [True, False, True, False]
    assert figures["only_unknown"] == 2
    pd.DataFrame({"good": texts[:2], "bad": ["the", "a"]}).to_csv(tmp_path / "a.csv", index=False)
    pairs = ["--pairs", f"--input={tmp_path}/a.csv", f"--output={tmp_path}/b.csv"]
    [figures] = rows_of(capfd, *arguments, *pairs)
    assert pd.read_csv(tmp_path / "b.csv")["only_unknown"].isna().tolist() == [False, True]
    assert figures["only_unknown"] == 1


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


def test_orders_of_a_text_are_mixed_and_compared(capfd, world):
    arguments = ["score", f"--model={world.pretrained}", "--text=The cat sat.", "--text=And then"]
    options = ["--order=random", "--num_orders=3", "--consistency"]
    [*rows, figures] = rows_of(capfd, *arguments, *options)
    for row in rows:
        assert row["deviation"] == pytest.approx(row["standard_error"] * np.sqrt(3))
        assert row["mixture"]["log_likelihood"] >= row["total"] and row["mixture"]["bias"] <= 0
    for name in ("deviation", "halves_gap"):
        assert figures[name] == pytest.approx(np.mean([row[name] for row in rows]))
    totals = [rows_of(capfd, *arguments, f"--order={o}")[0]["total"] for o in ORDERS]
    assert np.std(totals) > 0
    long, outside = ["--text=" + "The cat sat. " * 99], ["--text=☃ sat."]
    for order in ORDERS[1:]:
        sentence = refused(run(capfd, *arguments, *long, f"--order={order}"))
        assert f"a text of one window for order={order}" in sentence
    unknown = [
        rows_of(capfd, *arguments, *outside, *more)[-1]["unknown_tokens"]
        for more in ([], ["--order=inside_out"], ["--consistency"])
    ]
    assert unknown[0] > 0 and len({*unknown}) == 1
    assert "consistency: expected texts" in refused(run(capfd, *arguments, *options, "--words"))


ORDERS = ["left_to_right", "right_to_left", "inside_out", "entropy"]


def test_generation_in_steps_is_that_of_python(capfd, world):
    texts = ["The cat", "A ____{2} sat."]
    options = {"num_tokens": 5, "temperature": 0.5, "seed": 3, "steps": 2, "select": "margin"}
    flags = [f"--{name}={value}" for name, value in options.items()]
    flags += ["--remask", *(f"--text={text}" for text in texts)]
    [*rows, _] = rows_of(capfd, "generate", f"--model={world.pretrained}", *flags)
    expected = xlnet.generate(world.pretrained, texts, remask=True, **options)
    assert [row["output"] for row in rows] == expected


def test_pairs_are_compared_by_group(capfd, world, tmp_path):
    pairs = [
        {"sentence_good": "The cat sat.", "sentence_bad": "The cat sit.", "UID": "a"},
        {"sentence_good": "And then", "sentence_bad": "And than more", "UID": "b"},
    ]
    source, output = tmp_path / "pairs.jsonl", tmp_path / "differences.csv"
    source.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    options = ["--order=random", "--num_orders=3", "--seed=5", f"--output={output}"]
    arguments = ["score", f"--model={world.pretrained}", "--pairs", *options]
    [figures] = rows_of(capfd, *arguments, f"--input={source}")
    assert figures["pairs"] == 2 and set(figures["groups"]) == {"a", "b"}
    found = pd.read_csv(output)
    assert found["difference"].mean() == pytest.approx(figures["mean_difference"])
    assert (found["difference"] > 0).mean() == figures["accuracy"]
    texts = [text for pair in pairs for text in list(pair.values())[:2]]
    [*rows, _] = rows_of(
        capfd,
        "score",
        f"--model={world.pretrained}",
        *options[:3],
        *[f"--text={t}" for t in texts],
    )
    assert found[["good_total", "bad_total"]].to_numpy().ravel().tolist() == pytest.approx(
        [row["total"] for row in rows]  # In the same orders.
    )
    regions = {"good": ["The", "cat", "sat"], "bad": ["The", "", "sit"]}
    conditions = [
        {
            "condition_name": name,
            "regions": [{"region_number": n, "content": text} for n, text in enumerate(texts, 1)],
        }
        for name, texts in regions.items()
    ]
    formulas = ["(3;%good%) < (3;%bad%)", "(1;%good%) + (2;%good%) + (3;%good%) < (*;%good%)"]
    suite = {
        "predictions": [{"type": "formula", "formula": formula} for formula in formulas],
        "items": [{"item_number": 1, "conditions": conditions}],
    }
    source = tmp_path / "suite.json"
    source.write_text(json.dumps(suite, indent=1))
    differences = []
    for context in ([], ["--context=It was late, too."]):
        [figures] = rows_of(capfd, *arguments, f"--input={source}", *context)
        assert figures["pairs"] == 2
        found = pd.read_csv(output)
        assert found["prediction"].tolist() == formulas
        differences.append(found["difference"].tolist())
        assert differences[-1][1] == pytest.approx(0, abs=1e-4)  # Regions make up the text.
    assert differences[0][0] != differences[1][0]
    suite["predictions"].append({"type": "formula", "formula": "(4;%good%) < 1"})
    (tmp_path / "wrong.json").write_text(json.dumps(suite))
    for wrong, message in (
        ([f"--input={world.text}"], "expected a string 'good'"),
        (["--text=a"], "--pairs: expected input"),
        ([f"--input={tmp_path / 'wrong.json'}"], "prediction '(4;%good%) < 1': expected"),
        ([f"--input={tmp_path / 'pairs.jsonl'}", "--group=x"], "--group: expected a column"),
        ([f"--input={source}", "--output=x.xlsx"], "expected a file ending in .tsv"),
    ):
        assert message in refused(run(capfd, *arguments, *wrong))


def test_norms_of_completions_correlate(capfd, world, tmp_path):
    frame = pd.DataFrame(
        {
            "frame": ["The cat", "The cat", "", "He saw"],
            "completion": ["sat.", "and then", "The", "water."],
            "cloze": [0.5, 0.01, 0, 0.25],
            "kind": ["a", "a", "b", "a"],
        }
    )
    frame.to_csv(tmp_path / "norms.csv", index=False)
    flags = ["score", f"--model={world.pretrained}", f"--input={tmp_path / 'norms.csv'}"]
    [*rows, metrics] = rows_of(capfd, *flags, "--norms=cloze", "--group=kind")
    alone = [
        rows_of(capfd, *flags[:2], f"--text={text}", f"--context={context}")[0]["log_likelihood"]
        for context, text in frame[["frame", "completion"]].to_numpy()
    ]
    assert [row["total"] for row in rows] == pytest.approx(alone)
    assert metrics["spearman"] == pytest.approx(frame["cloze"].corr(pd.Series(alone), "spearman"))
    assert metrics["groups"]["b"] == {"texts": 1, "pearson": None, "spearman": None}
    error = refused(run(capfd, *flags))  # Not without their frames.
    assert "expected a string 'text', got the columns frame" in error
    frame.assign(cloze=["0.5", "", "0", "x"]).to_csv(tmp_path / "norms.csv", index=False)
    for wrong, message in (
        ("cloze", "row 2, column 'cloze': expected a number, got ''"),
        ("close", "--norms: expected a column of"),
    ):
        assert message in refused(run(capfd, *flags, f"--norms={wrong}"))


def test_generate_continues_and_fills_in(capfd, world):
    arguments = ["generate", f"--model={world.pretrained}", "--num_tokens=5", "--top_k=20"]
    texts = ["--text=The ____ sat", "--text=Once upon a", "--text=____{2} and ____."]
    [*rows, figures] = rows_of(capfd, *arguments, *texts, "--max_blank_length=2")
    assert (figures["continued"], figures["filled"]) == (1, 2)
    outputs = [row["output"] for row in rows]
    assert outputs[0].startswith("The ") and outputs[0].endswith(" sat")
    assert outputs[1].startswith("Once upon a")
    assert " and " in outputs[2] and "____" not in "".join(outputs)
    sampling, prompts = {"top_p": 0.9, "seed": 5}, [text[7:] for text in texts]
    more = ["--max_blank_length=2", *(f"--{name}={value}" for name, value in sampling.items())]
    found = [row["output"] for row in rows_of(capfd, *arguments, *texts, *more)[:-1]]
    options = {"top_k": 20, "max_blank_length": 2, **sampling}
    assert found == xlnet.generate(world.pretrained, prompts, 5, **options) != outputs


def test_blanks_have_candidates(capfd, world):
    arguments = ["generate", f"--model={world.pretrained}", "--text=The ____ sat"]
    [row, figures] = rows_of(capfd, *arguments, "--candidates=3")
    assert figures == {"texts": 1}
    assert [each["rank"] for each in row["candidates"][0]] == [1, 2, 3]
    longer = ["--text=____{2} sat", "--candidates=7", "--max_blank_length=2"]
    [row, exact, _] = rows_of(capfd, *arguments, *longer)
    assert len({each["string"] for each in row["candidates"][0]}) == 7
    tokenizer = xlnet.load_tokenizer(world.pretrained)
    assert all(len(tokenizer.encode(each["string"])) == 2 for each in exact["candidates"][0])
    [row, _] = rows_of(capfd, *arguments, "--choices=cat,door mat")
    assert {each["string"] for each in row["candidates"][0]} == {"cat", "door mat"}


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
    assert message in refused(run(capfd, verb, f"--model={world.pretrained}", *arguments))


@pytest.mark.parametrize(
    ("row", "flags", "message"),
    [
        ({"text": "a", "context": 3}, [], "row 1: expected a string 'context', got 3"),
        ({"text": 3}, [], "row 1: expected a string 'text', got 3"),
        ({"texts": "a"}, [], "row 1: expected a string 'text', got the columns texts; did you"),
        ({"text": "a", "word": "b"}, ["--words", "--output=w.tsv"], "got word; rename them"),
        ({"text": "a"}, ["--unit=bits"], "--words: expected, as unit and punctuation"),
        ({"text": "a"}, ["--group=text"], "--group: expected pairs or norms"),
    ],
)
def test_columns_that_do_not_fit_are_one_sentence(row, flags, message, capfd, world, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    flags = [f"--model={world.pretrained}", f"--input={tmp_path}/a.jsonl", *flags]
    assert message in refused(run(capfd, "score", *flags))
