"""HF folders and TF1 releases are taken wherever a model directory is, and nothing is written."""

import pathlib
import shutil

import numpy as np
import pytest

from official import xlnet
from official.xlnet.api.convert import convert
from official.xlnet.inference.task_prediction import load_task
from tests.helpers import checkpoints
from tests.helpers.compare import assert_refused, assert_same_variables

TEXTS = ["The water may find its way.", "", "now 1,000 people, and more than one of them there"]


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


@pytest.mark.slow
@pytest.mark.parametrize("untie_r", [True, False])
@pytest.mark.parametrize("name", ["tf1", "hf"])
def test_same_weights_as_converted_and_nothing_written(tmp_path, vocab_file, name, untie_r):
    folder, ours = in_both(tmp_path, vocab_file, name, untie_r=untie_r)
    before = files(tmp_path)
    assert xlnet.load_config(folder) == xlnet.load_config(ours)
    for load in (xlnet.load_encoder, xlnet.load_pretrainer):
        assert_same_variables(load(folder).variables, load(ours).variables)
    np.testing.assert_array_equal(xlnet.embed(folder, TEXTS), xlnet.embed(ours, TEXTS))
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("classification_mnli", "classification"),
        ("race", "multiple_choice"),
        ("squad", "question_answering"),
    ],
)
def test_fine_tuned_release(tmp_path, vocab_file, head, name):
    folder, ours = in_both(tmp_path, vocab_file, "tf1", head)
    (found, task), (expected, _) = load_task(folder), load_task(ours)
    assert_same_variables(found.variables, expected.variables)
    assert task.config.task.name == name
    assert_refused("has no LM head: expected a pre-trained model", xlnet.load_pretrainer, folder)


def test_tokenizer_and_configuration_of_a_model_directory_fit(world, tmp_path):
    config = xlnet.load_config(world.pretrained)
    config.data.lowercase, config.data.keep_accents = True, True
    config.save(str(tmp_path))
    assert_refused(r"spiece\.model", xlnet.load_tokenizer, str(tmp_path))
    shutil.copy(f"{world.vocab}/spiece.model", tmp_path)
    expected = xlnet.Tokenizer(f"{world.vocab}/spiece.model", True, True)
    assert xlnet.load_tokenizer(str(tmp_path)).encode("ON É") == expected.encode("ON É")
    config.model.vocab_size = 210
    config.save(str(tmp_path))
    assert_refused(
        r"expected at least 211, .* has 211 .* got 210", xlnet.load_tokenizer, str(tmp_path)
    )


@pytest.mark.parametrize(
    ("name", "reader"),
    [
        ("model.keras", "keras.models.load_model"),
        ("model.h5", "keras.models.load_model"),
        ("model.weights.h5", "load_weights"),
    ],
)
def test_a_file_of_keras_is_told_with_what_reads_it(tmp_path, name, reader):
    path = tmp_path / name
    path.write_bytes(b"PK\x03\x04\xff")
    for load in (xlnet.load_model, xlnet.load_encoder, xlnet.load_config):
        with pytest.raises(ValueError, match=f"expected a model directory, .*`{reader}`"):
            load(path)


def test_a_model_directory_may_be_named_as_a_file_of_keras(world, tmp_path):
    copy = shutil.copytree(world.pretrained, tmp_path / "model.keras")
    assert xlnet.load_config(copy) == xlnet.load_config(world.pretrained)
