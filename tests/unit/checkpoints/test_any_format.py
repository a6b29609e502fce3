"""HF folders and TF1 releases are taken wherever a model directory is, and nothing is written."""

import json
import pathlib

import numpy as np
import pytest

from official import xlnet
from official.xlnet import cli
from official.xlnet.checkpoints.convert import convert
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.inference.task_prediction import load_task
from tests.helpers import checkpoints

TEXTS = ["The water may find its way.", "", "now 1,000 people, and more than one of them there"]


@pytest.fixture(params=["tf1", "hf"])
def pretrained(request, tmp_path, vocab_file):
    """(folder of another format, the same model as a model directory)"""
    return in_both(tmp_path, vocab_file, request.param)


def in_both(tmp_path, vocab_file, name, head=None, untie_r=True, **settings):
    values = checkpoints.random_values(checkpoints.tf1_shapes(untie_r, head))
    if name == "tf1":
        folder = checkpoints.write_tf1(tmp_path / "tf1", vocab_file, values, untie_r)
    else:
        values = checkpoints.hf_of_tf1(values)
        folder = checkpoints.write_hf(
            tmp_path / "hf", vocab_file, values, untie_r=untie_r, **settings
        )
    convert(folder, f"{tmp_path}/ours")
    return folder, f"{tmp_path}/ours"


def files(folder):
    return {path.name: path.stat().st_mtime_ns for path in pathlib.Path(folder).rglob("*")}


def assert_same_variables(found, expected):
    assert len(found.variables) == len(expected.variables) > 40
    for ours, theirs in zip(found.variables, expected.variables, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), ours.name)


@pytest.mark.slow
@pytest.mark.parametrize("untie_r", [True, False])
@pytest.mark.parametrize("name", ["tf1", "hf"])
def test_same_weights_as_converted_and_nothing_written(tmp_path, vocab_file, name, untie_r):
    folder, ours = in_both(tmp_path, vocab_file, name, untie_r=untie_r)
    before = files(tmp_path)
    assert xlnet.load_config(folder) == xlnet.load_config(ours)
    assert_same_variables(xlnet.load_encoder(folder), xlnet.load_encoder(ours))
    assert_same_variables(xlnet.load_pretrainer(folder), xlnet.load_pretrainer(ours))
    np.testing.assert_array_equal(xlnet.embed(folder, TEXTS), xlnet.embed(ours, TEXTS))
    assert files(tmp_path) == before


@pytest.mark.parametrize("head", ["classification_mnli", "race", "squad"])
def test_fine_tuned_release(tmp_path, vocab_file, head):
    folder, ours = in_both(tmp_path, vocab_file, "tf1", head)
    (found, task), (expected, _) = load_task(folder), load_task(ours)
    assert_same_variables(found, expected)
    assert (
        task.config.task.name
        == {
            "classification_mnli": "classification",
            "race": "multiple_choice",
            "squad": "question_answering",
        }[head]
    )
    with pytest.raises(DataError, match="has no LM head: expected a pre-trained model"):
        xlnet.load_pretrainer(folder)


def test_tokenizer(tmp_path, vocab_file):
    folder, _ = in_both(tmp_path, vocab_file, "hf")
    assert xlnet.load_tokenizer(folder).encode("ON É") == xlnet.Tokenizer(vocab_file).encode("ON É")
    settings = {"do_lower_case": True, "keep_accents": True}
    pathlib.Path(folder, "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = xlnet.load_tokenizer(folder)
    assert (tokenizer.lowercase, tokenizer.keep_accents) == (True, True)
    assert tokenizer.encode("ON É") == xlnet.Tokenizer(vocab_file, True, True).encode("ON É")


def test_tokenizer_of_a_model_directory(tmp_path, vocab_file):
    data = {"lowercase": True, "keep_accents": True}
    config = XLNetConfig.from_dict({"data": data, "model": {"vocab_size": 2000}})
    config.save(str(tmp_path))
    with pytest.raises(DataError, match=r"spiece\.model"):
        xlnet.load_tokenizer(str(tmp_path))
    (tmp_path / "spiece.model").write_bytes(pathlib.Path(vocab_file).read_bytes())
    tokenizer = xlnet.load_tokenizer(str(tmp_path))
    assert (tokenizer.lowercase, tokenizer.keep_accents) == (True, True)
    config.model.vocab_size = 1999
    config.save(str(tmp_path))
    with pytest.raises(ConfigError, match=r"expected at least 2000, .* has 2000 .* got 1999"):
        xlnet.load_tokenizer(str(tmp_path))


@pytest.mark.slow
def test_commands_take_them(pretrained, tmp_path, capsys):
    folder, ours = pretrained
    lines = []
    for model in (folder, ours):
        assert cli.main(["score", f"--model={model}", "--text=now and then"]) == 0
        lines.append(capsys.readouterr().out)
    assert lines[0] == lines[1] and '"total"' in lines[0]
    arguments = ["--head=lm", "--max_length=16", f"--output={tmp_path}/served"]
    assert cli.main(["export", f"--model={folder}", *arguments]) == 0
    page = f"--output={tmp_path}/a.html"
    assert cli.main(["inspect", "attention", f"--model={folder}", "--text=now", page]) == 0
    capsys.readouterr()
