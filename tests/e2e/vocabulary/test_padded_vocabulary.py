"""A word embedding with more rows than the vocabulary has pieces: no verb sees the rest."""

import copy
import json
import os

import numpy as np
import pytest
import tensorflow as tf

from official import xlnet
from official.xlnet.checkpoints.convert import convert, open_source
from official.xlnet.checkpoints.convert.xlnet_format import write_variables
from official.xlnet.checkpoints.model_directory import PARTS
from official.xlnet.configs.model import ModelConfig
from official.xlnet.errors import ConfigError
from official.xlnet.tokenization.tokenizer import copy_vocabulary
from tests.helpers.wrong_input import make_world, run

pytestmark = pytest.mark.slow

PIECES, ROWS = 211, 257
_ROWS_OF = ("encoder/word_embedding/embeddings", "lm_head/bias")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return make_world(tmp_path_factory.mktemp("world"))


def pad(source, output, as_before=False):
    """A model with rows of padding that would win every prediction; their number as recorded now.

    As it was recorded before, `vocab_size` was the number of rows.
    """
    source = open_source(str(source))
    config, rng = copy.deepcopy(source.config), np.random.default_rng(0)
    sizes = (ROWS, 0) if as_before else (PIECES, ROWS)
    config.model.vocab_size, config.model.embedding_rows = sizes

    def variables():
        for name in source.shapes:
            if name.partition("/")[0] in PARTS:
                value = source.read(name)
                if name in _ROWS_OF:
                    more = rng.normal(50, 50, [ROWS - PIECES, *value.shape[1:]])
                    value = np.concatenate([value, more.astype(np.float32)])
                yield name, value

    os.makedirs(output)
    write_variables(str(output), variables())
    copy_vocabulary(source.vocab_file, str(output))
    config.save(str(output))
    return output


def verbs_of(world, language, task, out):
    """Verbs that end with 0, and their flags."""
    model, texts = f"--model={language}", f"--input={world / 'texts.txt'}"
    train = f"--train={world / 'train.tsv'}", f"--dev={world / 'dev.tsv'}"
    return {
        "evaluate": [model, f"--data={world / 'data'}"],
        "score": [model, texts],
        "generate": [model, texts, "--text=the ____ was", "--num_tokens=7"],
        "embed": [model, texts, f"--output={out / 'vectors.npy'}"],
        "predict": [
            *(f"--model={task}", f"--input={world / 'dev.tsv'}"),
            f"--output={out / 'predictions.jsonl'}",
        ],
        "finetune": [
            *("--task=classification", f"--init_from={language}", f"--output={out / 'task'}"),
            *(*train, "--set=num_steps=2", "--set=max_length=23", "--set=warmup_steps=0"),
            "--set=num_buckets=1",
        ],
        "pretrain": [
            *(f"--config={language}", f"--init_from={language}", f"--data={world / 'data'}"),
            f"--model_dir={out / 'model'}",
        ],
        "vocab": [
            *(f"--extend={language}", "--size=+5", f"--input={world / 'text.txt'}"),
            f"--output={out / 'extended'}",
        ],
        "export": [
            *(model, "--head=lm", f"--output={out / 'exported'}", "--buckets=23"),
        ],
    }


def test_every_verb_answers_as_without_padding(world, tmp_path, capfd):
    water, results = "the water", {"plain": {}, "padded": {}}
    for kind, result in results.items():
        language, task, out = world / "language", world / "task", tmp_path / f"{kind}_out"
        if kind == "padded":
            language, task = (pad(m, tmp_path / m.name) for m in (language, task))
        out.mkdir()
        for verb, arguments in verbs_of(world, language, task, out).items():
            if (kind, verb) == ("plain", "export"):
                continue
            outcome = run(capfd, verb, *arguments)
            assert outcome.status == 0, (verb, outcome.err)
            if verb != "export":
                result[verb] = values_of(outcome)
        result["vectors"] = np.load(out / "vectors.npy").tolist()
        result["predictions"] = (out / "predictions.jsonl").read_text()
        result["extended"] = xlnet.score(str(out / "extended"), water).total
    same(results["padded"], results["plain"])
    expected = xlnet.score(str(world / "language"), water).total
    for form in ("hf", "tf1", "xlnet"):  # Of the padded model, as `language` and `out` are now.
        convert(str(out / "hf" if form == "xlnet" else language), str(out / form), form)
        same(xlnet.score(str(out / form), water).total, expected)
    exported = tf.saved_model.load(str(next((out / "exported").glob("[0-9]*"))))
    outputs = exported.signatures["serving_default"](text=tf.constant([water]))
    assert float(outputs["log_likelihood"][0]) == pytest.approx(expected, abs=1e-4)
    # A configuration that does not tell padding from pieces, as models had it before.
    padded = pad(world / "language", tmp_path / "before", as_before=True)
    arguments = verbs_of(world, padded, world / "task", tmp_path)
    for verb in ("evaluate", "score"):
        outcome = run(capfd, verb, *arguments[verb])
        assert outcome.status == 0, (verb, outcome.err)
        same(values_of(outcome), results["plain"][verb])


def values_of(outcome):
    """What a verb printed, without rates."""
    lines = [json.loads(line) for line in outcome.out.splitlines()]
    flat = {f"{n} {key}": x for n, line in enumerate(lines) for key, x in line.items()}
    return {key: x for key, x in flat.items() if "per_second" not in key}


def same(one, other, path=""):
    """Asserts that two trees of numbers and texts are equal, up to rounding."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), path
        for key in one:
            same(one[key], other[key], f"{path}/{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), path
        for number, pair in enumerate(zip(one, other, strict=True)):
            same(*pair, f"{path}/{number}")
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-5), path
    else:
        assert one == other, path


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
