"""The verbs of the project on a model directory, also by their former spellings."""

import json

import numpy as np
import pandas as pd
import pytest

from official import xlnet
from official.xlnet import cli
from official.xlnet.configs.registry import TEXT_ROW_FORMATS
from tests.helpers.wrong_input import run


def rows_of(capfd, *arguments):
    """JSON lines of standard output."""
    assert cli.main([*arguments]) == 0
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


def refused(outcome):
    """The last line of a command that is refused; a former spelling is named in a line before."""
    assert outcome.status == 2
    return outcome.err.splitlines()[-1]


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
    again = tmp_path / f"again.{ending}"
    rows_of(capfd, "words", *arguments[1:], "--unit=bits", f"--output={again}")
    assert again.read_bytes() == output.read_bytes()


def test_orders_of_a_text_are_mixed_and_compared(capfd, world):
    arguments = ["score", f"--model={world.pretrained}", "--text=The cat sat.", "--text=And then"]
    options = ["--order=random", "--num_orders=3", "--consistency"]
    [*rows, figures] = rows_of(capfd, *arguments, *options)
    for row in rows:
        assert row["deviation"] == pytest.approx(row["standard_error"] * np.sqrt(3))
        assert row["mixture"]["log_likelihood"] >= row["total"]
        assert 1 <= row["mixture"]["effective_orders"] <= 3
        untold = {row["mixture"][name] for name in ("bias", "standard_error", "k_hat")}
        assert untold == {None}  # From 3 orders.
    for name in ("deviation", "halves_gap"):
        assert figures[name] == pytest.approx(np.mean([row[name] for row in rows]))
    assert figures["compared_texts"] == 2
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
    assert rows_of(capfd, "consistency", *arguments[1:], *options[:2]) == [*rows, figures]
    assert "unknown flag --consistency" in refused(run(capfd, *arguments, *options, "--words"))
    assert "num_orders" in refused(run(capfd, *arguments, "--consistency", "--num_orders=1"))


ORDERS = ["left_to_right", "right_to_left", "inside_out", "entropy"]


def test_generation_in_steps_is_that_of_python(capfd, world):
    texts = ["The cat", "A ____{2} sat on ____."]
    options = {"num_tokens": 5, "temperature": 0.5, "seed": 3, "steps": 2, "select": "margin"}
    options |= {"top_k": 20, "top_p": 0.9, "max_blank_length": 2}
    flags = [f"--{name}={value}" for name, value in options.items()]
    flags += ["--remask", *(f"--text={text}" for text in texts)]
    [*rows, _] = rows_of(capfd, "generate", f"--model={world.pretrained}", *flags)
    expected = xlnet.generate(world.pretrained, texts, remask=True, **options)
    assert [row["output"] for row in rows] == expected
    assert rows_of(capfd, "unmask", f"--model={world.pretrained}", *flags)[:-1] == rows
    for more in ("--select=margin", "--remask"):
        sentence = refused(run(capfd, "generate", f"--model={world.pretrained}", more))
        assert "--steps is required" in sentence


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
    [by_side] = rows_of(capfd, *arguments, f"--input={source}", "--cluster=UID")
    assert by_side["clusters"] == [2] and by_side["accuracy"] == figures["accuracy"]
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
        (["--text=a"], "unknown flag --text"),
        ([], "--input is required"),
        (["--input=-"], "--input: expected a file"),
        ([f"--input={tmp_path / 'wrong.json'}"], "prediction '(4;%good%) < 1': expected"),
        ([f"--input={tmp_path / 'pairs.jsonl'}", "--group=x"], "--group: expected a column"),
        (
            [f"--input={source}", "--cluster=item,x"],
            "--cluster: expected a column of the input, got",
        ),
        ([f"--input={source}", "--output=x.xlsx"], "expected a file ending in .tsv"),
    ):
        assert message in refused(run(capfd, *arguments[:-1], *wrong))


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
    assert rows_of(capfd, "norms", *flags[1:], "--norms=cloze", "--group=kind") == [*rows, metrics]
    error = refused(run(capfd, *flags))  # Not without their frames.
    assert "expected a string 'text', got the columns frame" in error
    frame["length"] = [1.0, 2.0, 1.0, 5.0]
    more = pd.concat(3 * [frame], ignore_index=True)
    more["item"] = np.arange(12) // 2
    more.to_csv(tmp_path / "more.csv", index=False)
    flags[2] = f"--input={tmp_path / 'more.csv'}"
    more_flags = ["--norms=cloze", "--cluster=item", "--baseline=length"]
    metrics = rows_of(capfd, "norms", *flags[1:], *more_flags)[-1]
    assert metrics["clusters"] == [6] and len(metrics["pearson_interval"]) == 2
    assert len(metrics["log_likelihood_gain_interval"]) == 2 and metrics["coefficient"]
    for wrong in ("--cluster=subject", "--baseline=frequency"):
        error = refused(run(capfd, "norms", *flags[1:], "--norms=cloze", wrong))
        assert f"{wrong.split('=')[0]}: expected a column of" in error
    flags[2] = f"--input={tmp_path / 'norms.csv'}"
    frame.assign(cloze=["0.5", "", "0", "x"]).to_csv(tmp_path / "norms.csv", index=False)
    for wrong, message in (
        ("cloze", "norms.csv, row 2: expected a number of at most 1e+18 in 'cloze', got ''"),
        ("close", "--norms: expected a column of"),
    ):
        assert message in refused(run(capfd, *flags, f"--norms={wrong}"))


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
    assert rows_of(capfd, "candidates", *arguments[1:], "--choices=cat,door mat")[0] == row


def test_pairs_of_unknown_tokens_are_marked(capfd, world, tmp_path):
    texts = ["\u2603", "the \u2603"]
    pd.DataFrame({"good": texts, "bad": ["the", "a"]}).to_csv(tmp_path / "a.csv", index=False)
    flags = [f"--input={tmp_path}/a.csv", f"--output={tmp_path}/b.csv"]
    [figures] = rows_of(capfd, "pairs", f"--model={world.pretrained}", *flags)
    assert pd.read_csv(tmp_path / "b.csv")["only_unknown"].isna().tolist() == [False, True]
    assert figures["only_unknown"] == 1


def test_columns_that_words_writes_are_one_sentence(capfd, world, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "a", "word": "b"}) + "\n")
    flags = [f"--model={world.pretrained}", f"--input={tmp_path}/a.jsonl"]
    for verb in (["score", "--words"], ["words"]):
        sentence = refused(run(capfd, *verb, *flags, "--output=w.tsv"))
        assert "got word; rename them" in sentence


@pytest.mark.parametrize("verb", ["words", "pairs", "norms", "consistency"])
def test_flags_of_scores_are_the_same_in_other_verbs(verb, capfd, world, tmp_path):
    good, bad = ["The cat sat.", "And then"], ["The cat sit.", "And than more"]
    texts = [*good, *bad] if verb == "pairs" else good
    frame = pd.DataFrame({"good": good, "bad": bad, "text": good, "norm": [0.5, 0.1]})
    frame["context"] = "none"
    frame.to_csv(tmp_path / "a.csv", index=False)
    flags = [f"--model={world.pretrained}", "--whole_given"]
    shared = {"order": "random", "num_orders": 2, "seed": 7, "given": "right"}
    shared["context"] = "It was late."
    flags += [f"--{name}={value}" for name, value in shared.items()]
    expected = rows_of(capfd, "score", *flags, *(f"--text={text}" for text in texts))[-1]
    more = {"norms": ["--norms=norm"], "words": [f"--output={tmp_path}/w.tsv"]}
    found = rows_of(capfd, verb, *flags, f"--input={tmp_path}/a.csv", *more.get(verb, []))[-1]
    for name in ("texts", "tokens", "log_likelihood", "standard_error", "perplexity"):
        assert found[name] == pytest.approx(expected[name]), name


@pytest.mark.parametrize(
    "verb", ["words", "consistency", "score_steps --steps=2", "mutual_information"]
)
def test_formats_of_other_projects_are_read_by_name(verb, capfd, world, tmp_path, monkeypatch):
    def numbered(path):
        return [{"id": 1, "text": "The cat sat."}, {"id": 2, "text": ""}]

    monkeypatch.setitem(TEXT_ROW_FORMATS, "numbered", numbered)
    (tmp_path / "a").write_text("Not read.")
    flags = [f"--model={world.pretrained}", f"--input={tmp_path}/a", "--format=numbered"]
    [*rows, figures] = rows_of(capfd, *verb.split(), *flags)
    assert figures["texts"] == 2 and rows[0]["id"] == 1
    wrong = [*verb.split(), *flags[:2], "--format=lattice"]
    assert "format: expected one of" in refused(run(capfd, *wrong))


def test_words_of_several_texts_are_lists(world):
    texts = ["The cat sat.", "And then, so"]
    scores = xlnet.score(world.pretrained, texts)
    words = xlnet.words_of(scores)
    assert words == [xlnet.words_of(score) for score in scores]
    assert [[word.word for word in of_text] for of_text in words] == [x.split() for x in texts]
    assert xlnet.words_of([]) == []
