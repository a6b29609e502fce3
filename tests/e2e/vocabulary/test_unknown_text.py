"""Text that the vocabulary lacks, and text settings that differ: counted, warned of, or refused."""

import random

import pytest

from official import xlnet
from official.xlnet.errors import DataError
from official.xlnet.tokenization.unknown_text import check_unknown
from tests.helpers.wrong_input import make_world, refused, run

ONE_WORKER = "--num_workers=1"
FOREIGN = "人 权 是 天 赋 的"  # Six words, six characters: <unk> twelve times with their spaces.


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("world"))


def write(path, share, lines, labels=False):
    """Text of which a share of the lines is foreign; a table of two classes with `labels`."""
    draw = random.Random(0)
    foreign = {i for i in range(lines) if i % round(1 / share) == 0} if share else set()
    texts = [
        f"{draw.choice(['the water', 'some people'])} {FOREIGN if i in foreign else 'was made'}"
        for i in range(lines)
    ]
    rows = [f"{'ab'[i % 2]}\t{text}" for i, text in enumerate(texts)]
    path.write_text("\n".join(["label\ttext", *rows] if labels else texts) + "\n")
    return texts


def expected(world, texts):
    tokenizer = xlnet.Tokenizer(str(world / "vocab/spiece.model"))
    ids = [i for text in texts for i in tokenizer.encode(text)]
    return {"unknown_tokens": ids.count(0), "unknown_share": round(ids.count(0) / len(ids), 4)}


def test_prepare_counts_warns_and_refuses(world, tmp_path, capfd):
    def prepare(share, output, *settings):
        texts = write(tmp_path / "text.txt", share, 600)
        arguments = f"--input={tmp_path / 'text.txt'}", f"--vocab={world / 'vocab'}"
        config = f"--config={world / 'config.yaml'}", "--set=heldout_fraction=0", ONE_WORKER
        output = f"--output={tmp_path / output}"
        return texts, run(capfd, "prepare", *arguments, *config, output, *settings)

    for share, is_warned in ((0, False), (0.02, True)):
        texts, outcome = prepare(share, f"data{share}")
        assert outcome.status == 0
        assert outcome.result["unknown_tokens"] == expected(world, texts)["unknown_tokens"]
        assert (outcome.result["unknown_share"] > 0.01) == is_warned
        assert ("are <unk>" in outcome.err) == is_warned
    _, outcome = prepare(1.0, "foreign")
    assert "are <unk>" in refused(outcome) and "data.max_unknown=1" in outcome.err
    texts, outcome = prepare(1.0, "foreign", "--set=data.max_unknown=1")
    assert outcome.status == 0
    assert outcome.result["unknown_tokens"] == expected(world, texts)["unknown_tokens"]
    assert outcome.result["unknown_share"] > 0.2


def test_every_verb_that_reads_text_counts(world, tmp_path, capfd):
    train, dev = tmp_path / "train.tsv", tmp_path / "dev.tsv"
    texts = {train: write(train, 1, 8, labels=True), dev: write(dev, 0.25, 8, labels=True)}
    task, language = tmp_path / "task", f"--model={world / 'language'}"
    finetune = [
        *("finetune", "--task=classification", f"--train={train}", f"--dev={dev}"),
        *(f"--init_from={world / 'language'}", f"--output={task}", "--set=num_steps=1"),
        *("--set=warmup_steps=0", "--set=max_length=23", "--set=num_buckets=1"),
    ]
    assert "train data: " in refused(run(capfd, *finetune))
    outcome = run(capfd, *finetune, "--set=data.max_unknown=1")
    assert outcome.status == 0 and "train data: " in outcome.err
    for split, path in (("train", train), ("dev", dev)):
        for name, number in expected(world, texts[path]).items():
            assert outcome.result[f"{split}_{name}"] == number, (split, name)
    plain = tmp_path / "dev.txt"
    plain.write_text("\n".join(texts[dev]) + "\n")
    for verb, *arguments in (
        ("evaluate", f"--model={task}", f"--data={dev}"),
        ("predict", f"--model={task}", f"--input={dev}", f"--output={tmp_path / 'p.jsonl'}"),
        ("embed", language, f"--input={plain}", f"--output={tmp_path / 'v.npy'}"),
        ("score", language, f"--input={plain}"),
        ("generate", language, f"--input={plain}", "--num_tokens=1"),
    ):
        outcome = run(capfd, verb, *arguments)
        assert outcome.status == 0 and "are <unk>" in outcome.err, (verb, outcome)
        found = {name: outcome.result[name] for name in ("unknown_tokens", "unknown_share")}
        assert found == expected(world, texts[dev]), verb


def test_limit_by_hand():
    counts = {"tokens": 1000, "unknown_tokens": 200}
    assert check_unknown(counts, "x", 0.2) == {"unknown_tokens": 200, "unknown_share": 0.2}
    assert check_unknown({}, "x", 0.0) == {"unknown_tokens": 0, "unknown_share": 0.0}
    with pytest.raises(DataError, match=r"x: 200 of 1,000 tokens \(20\.0%\) are <unk>"):
        check_unknown(counts, "x", 0.199)
