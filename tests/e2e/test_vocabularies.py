"""Vocabularies that are extended, padded or lack a text, through every verb."""

import copy
import os
import random

import numpy as np
import pytest
import tensorflow as tf

from official import xlnet
from official.xlnet.api.convert import convert
from official.xlnet.checkpoints.model_directory import PARTS
from official.xlnet.checkpoints.source import open_source
from official.xlnet.checkpoints.xlnet_format import write_variables
from official.xlnet.configs.model import ModelConfig
from official.xlnet.data.text_counts import check_unknown
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.tokenization.vocabulary_file import read_vocabulary, write_vocabulary
from tests.helpers.world import command

PIECES, ROWS = 211, 257
FOREIGN = "人 权 是 天 赋 的"
STEPS = [f"--set={each}" for each in ("num_steps=2", "warmup_steps=0")]
TUNE = [*STEPS, "--task=classification", "--set=max_length=23", "--set=num_buckets=1"]
SETTINGS = {"pretrain": STEPS, "finetune": TUNE}


def use(world, language, task, data, texts, out):
    """What each verb says of a language model and of a classifier."""
    out.mkdir()
    labeled, model, start = world.files("classification"), {"model": language}, {}
    start["init_from"] = language
    verbs = {
        "evaluate": {**model, "data": data},
        "score": {**model, "input": texts},
        "embed": {**model, "input": texts, "output": out / "vectors.npy"},
        "generate": {**model, "input": texts, "num_tokens": 5},
        "pretrain": {**start, "config": language, "data": data, "output": out / "model"},
        "vocab": {"extend": language, "size": "+5", "input": world.text, "output": out / "more"},
        "finetune": {**labeled, **start, "output": out / "task"},
        "predict": {
            "model": task,
            "input": labeled["dev"],
            "output": out / "p.jsonl",
        },
    }
    found = {verb: command(verb, *SETTINGS.get(verb, ()), **flags) for verb, flags in verbs.items()}
    first, language = texts.read_text().split("\n")[0], str(language)
    found["total"] = xlnet.score(language, first).total
    found["extended"] = xlnet.score(str(out / "more"), first).total
    found["generated"] = xlnet.generate(language, first, 7, xlnet.Sampling(seed=1))
    found["filled"] = xlnet.fill_blanks(language, "the ____ was", max_length=2)
    found["vectors"] = np.load(out / "vectors.npy")
    return found, (out / "p.jsonl").read_text()


def same(one, other):
    """Asserts that what verbs say is equal up to rounding, without rates."""
    for name, value in one.items():
        if isinstance(value, dict):
            same(value, other[name])
        elif isinstance(value, str):
            assert value == other[name], name
        elif "per_second" not in name:
            assert value == pytest.approx(other[name], rel=1e-4, abs=1e-4), name


def pad(source, output, as_before=False):
    """A model with rows of padding that would win every prediction; their number as recorded now.

    As it was recorded before, `vocab_size` was the number of rows.
    """
    source, rng = open_source(str(source)), np.random.default_rng(0)
    config, values = copy.deepcopy(source.config), {}
    sizes = (ROWS, 0) if as_before else (PIECES, ROWS)
    config.model.vocab_size, config.model.embedding_rows = sizes
    for name in source.shapes:
        if name.partition("/")[0] in PARTS:
            values[name] = source.read(name)
    for name in ("encoder/word_embedding/embeddings", "lm_head/bias"):
        if name in values:
            more = rng.normal(50, 50, [ROWS - PIECES, *values[name].shape[1:]])
            values[name] = np.concatenate([values[name], more.astype(np.float32)])
    os.makedirs(output)
    write_variables(str(output), values.items())
    write_vocabulary(read_vocabulary(source.vocab_file), str(output))
    config.save(str(output))
    return output


@pytest.mark.slow
def test_every_verb_answers_as_without_padding(world, tmp_path):
    task, text, data = world.task("classification").model, tmp_path / "texts.txt", world.data
    text.write_text("the water\nsome of the people were there")
    plain, predictions = use(world, world.pretrained, task, data, text, tmp_path / "plain")
    models = pad(world.pretrained, tmp_path / "language"), pad(task, tmp_path / "task")
    found, others = use(world, *models, data, text, tmp_path / "out")
    same(found, plain)
    assert others == predictions
    for form in ("hf", "tf1", "xlnet"):
        source = tmp_path / ("hf" if form == "xlnet" else "language")
        convert(str(source), str(tmp_path / form), form)
        total = xlnet.score(str(tmp_path / form), "the water").total
        assert total == pytest.approx(plain["total"], abs=1e-4)
    before = pad(world.pretrained, tmp_path / "before", as_before=True)
    same(command("evaluate", model=before, data=data), plain["evaluate"])
    command("export", "--head=lm", "--buckets=23", model=models[0], output=tmp_path / "exported")
    exported = tf.saved_model.load(str(next((tmp_path / "exported").glob("[0-9]*"))))
    outputs = exported.signatures["serving_default"](text=tf.constant(["the water"]))
    assert float(outputs["log_likelihood"][0]) == pytest.approx(plain["total"], abs=1e-4)


def test_the_size_follows_the_vocabulary_unless_it_is_larger():
    for given, rows, expected in ((0, 0, (211, 0)), (211, 0, (211, 0)), (256, 0, (211, 256))):
        model = ModelConfig(vocab_size=given, embedding_rows=rows)
        for _ in range(2):
            model.fit_vocabulary(211, "spiece.model")
            assert (model.vocab_size, model.embedding_rows) == expected
        with pytest.raises(ConfigError, match=r"model\.vocab_size: expected"):
            model.fit_vocabulary(307, "spiece.model")
    with pytest.raises(ConfigError, match=r"model\.vocab_size: expected 199, as the vocab"):
        ModelConfig(vocab_size=211, embedding_rows=256).fit_vocabulary(199, "spiece.model")
    with pytest.raises(ConfigError, match=r"len\(tokenizer\)"):
        xlnet.XLNetEncoder({"model": {"num_layers": 1}})


# Text that the vocabulary lacks.


def write(path, foreign, labels=False):
    """Eight lines of which some are foreign; a table of two classes with `labels`."""
    texts = [f"some people {FOREIGN if n in foreign else 'was made'}" for n in range(8)]
    rows = [f"{'ab'[n % 2]}\t{text}" for n, text in enumerate(texts)]
    path.write_text("\n".join(["label\ttext", *rows] if labels else texts) + "\n")
    return texts


def counts_of(world, texts):
    tokenizer = xlnet.Tokenizer(f"{world.vocab}/spiece.model")
    is_unknown = np.concatenate(tokenizer.encode_batch(texts)) == 0
    counts = is_unknown.sum(), round(is_unknown.mean(), 4)
    return dict(zip(("unknown_tokens", "unknown_share"), counts, strict=True))


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    "verbs",
    [
        ("evaluate", "score"),
        pytest.param(("predict", "embed", "generate"), marks=pytest.mark.slow),
    ],
    ids=", ".join,
)
def test_unknown_text_is_counted_warned_of_and_refused(verbs, world, tmp_path, capfd):
    train, dev, plain = (tmp_path / name for name in ("train.tsv", "dev.tsv", "plain.txt"))
    texts = {"train": write(train, range(8), True), "dev": write(dev, {0, 4}, True)}
    write(plain, {0, 4})
    flags = {"train": train, "dev": dev, "init_from": world.pretrained, "output": tmp_path / "task"}
    command("finetune", *TUNE, status=2, **flags)
    assert "train data: " in capfd.readouterr().err
    found = command("finetune", *TUNE, "--set=data.max_unknown=1", **flags)
    assert "train data: " in capfd.readouterr().err
    for split, lines in texts.items():
        expected = {f"{split}_{name}": x for name, x in counts_of(world, lines).items()}
        assert found.items() >= expected.items()
    language, output = {"model": world.pretrained}, tmp_path / "out"
    flags_of = {
        "evaluate": {"model": tmp_path / "task", "data": dev},
        "predict": {"model": tmp_path / "task", "input": dev, "output": f"{output}.jsonl"},
        "embed": {**language, "input": plain, "output": f"{output}.npy"},
        "score": {**language, "input": plain},
        "generate": {**language, "input": plain, "num_tokens": 1},
    }
    for verb in verbs:
        assert command(verb, **flags_of[verb]).items() >= counts_of(world, texts["dev"]).items(), (
            verb
        )
        assert "are <unk>" in capfd.readouterr().err, verb


@pytest.mark.parametrize(
    ("share", "settings", "message"),
    [(0, [], ""), (0.02, [], "are <unk>"), (1, ["max_unknown=1"], "are <unk>")]
    + [(1, [], "data.max_unknown=1"), (0, ["vocab_size=199"], "vocab_size: expected at least 211")],
)
def test_prepare_counts_warns_and_refuses(share, settings, message, world, tmp_path, capfd):
    lines = ["the water was made"] * 600 + [FOREIGN] * round(600 * share)
    (tmp_path / "text.txt").write_text("\n".join(random.Random(0).sample(lines, len(lines))))
    settings = [f"--set={each}" for each in ("heldout_fraction=0", *settings)]
    settings.append("--num_workers=1")
    flags = {"input": tmp_path / "text.txt", "vocab": world.vocab, "config": world.config}
    status = 0 if message in ("", "are <unk>") else 2
    found = command("prepare", *settings, status=status, output=tmp_path / "data", **flags)
    said = capfd.readouterr().err
    assert message in said and ("are <unk>" in said) == (share > 0)
    if status == 0:
        assert found["unknown_tokens"] == counts_of(world, lines)["unknown_tokens"]


@pytest.mark.parametrize(
    "setting", ["lowercase", pytest.param("keep_accents", marks=pytest.mark.slow)]
)
def test_settings_that_change_ids_are_compared(world, tmp_path, capfd, setting):
    data, config, other = tmp_path / "data", {"config": world.config}, f"--set=data.{setting}=true"
    flags = {"input": world.text, "vocab": world.vocab, "output": data, **config}
    command("prepare", "--num_workers=1", other, **flags)
    start, output = {"init_from": world.pretrained}, tmp_path / "out"
    for verb, settings, flags in (
        ("pretrain", [], {**config, "data": data, "output": output}),
        ("pretrain", [other], {**config, **start, "data": data, "output": output}),
        ("evaluate", [], {"model": world.pretrained, "data": data}),
        ("finetune", [*TUNE, other], {**world.files("classification"), **start, "output": output}),
    ):
        command(verb, *settings, status=2, **flags)
        assert f"data.{setting}" in capfd.readouterr().err, verb


def test_limit_by_hand():
    counts = {"tokens": 1000, "unknown_tokens": 200}
    assert check_unknown(counts, "x", 0.2) == {"unknown_tokens": 200, "unknown_share": 0.2}
    assert check_unknown({}, "x", 0.0) == {"unknown_tokens": 0, "unknown_share": 0.0}
    with pytest.raises(DataError, match=r"x: 200 of 1,000 tokens \(20\.0%\) are <unk>"):
        check_unknown(counts, "x", 0.199)
    counts |= {"unknown_tokens": 70, "unknown_characters": 310, "characters": 1000}
    assert check_unknown(counts, "x", 0.31) == {"unknown_tokens": 70, "unknown_share": 0.07}
    with pytest.raises(DataError, match=r"70 of 1,000 tokens \(7\.0%\).*, 31\.0% of all; expected"):
        check_unknown(counts, "x", 0.309)
    with pytest.raises(
        DataError, match=r"31\.0% of all; most are letters of which it has the other"
    ):
        check_unknown(counts | {"other_case": 200}, "x", 0.309)
