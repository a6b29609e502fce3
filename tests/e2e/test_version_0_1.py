"""What version 0.1 wrote still loads, and gives the values that version 0.1 gave.

`tests/fixtures/version_0_1.zip` was made by `tests/fixtures/make_version_0_1.py`, run with the last
commit of version 0.1 (78f0481) on the path: a data set, a pre-trained model stopped at half of its
steps, a classifier fine-tuned from it, its export, and `expected.json` with what the commands of
that version then reported.
"""

import json
import pathlib
import shutil
import zipfile

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet import cli

ARCHIVE = pathlib.Path(__file__).parents[1] / "fixtures" / "version_0_1.zip"


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    directory = tmp_path_factory.mktemp("version_0_1")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(directory)
    return directory


@pytest.fixture(scope="module")
def expected(old):
    return json.loads((old / "expected.json").read_text())


def xlnet(capsys, *arguments):
    assert cli.main([str(argument) for argument in arguments]) == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_records_and_pretrained_model(old, expected, capsys):
    got = xlnet(capsys, "evaluate", f"--model={old}/pretrained", f"--data={old}/records")
    assert got == pytest.approx(expected["evaluate"], rel=1e-5)


def test_a_run_of_the_old_version_continues(old, expected, capsys, tmp_path):
    copy = shutil.copytree(old / "pretrained", tmp_path / "model")
    model = f"--model_dir={copy}"
    config = f"--config={old}/pretrain.yaml"
    got = xlnet(capsys, "pretrain", config, f"--data={old}/records", model, "--steps=12")
    assert got["step"] == expected["continued"]["step"]
    assert got["loss"] == pytest.approx(expected["continued"]["loss"], rel=1e-5)
    got = xlnet(capsys, "evaluate", f"--model={copy}", f"--data={old}/records")
    assert got == pytest.approx(expected["evaluate_continued"], rel=1e-5)


def test_fine_tuned_model(old, expected, capsys, tmp_path):
    got = xlnet(capsys, "evaluate", f"--model={old}/classifier", f"--data={old}/dev.tsv")
    got = {name: got[name] for name in expected["evaluate_task"]}
    assert got == pytest.approx(expected["evaluate_task"], rel=1e-5)
    output = tmp_path / "predictions.jsonl"
    model = f"--model={old}/classifier"
    xlnet(capsys, "predict", model, f"--input={old}/dev.tsv", f"--output={output}")
    for got, wanted in zip(lines(output), expected["predictions"], strict=True):
        assert got["label"] == wanted["label"]
        assert got["probabilities"] == pytest.approx(wanted["probabilities"], abs=2e-6)


def test_exported_model(old, expected):
    import tensorflow_text  # noqa: F401  The graph has its operations.

    served = tf.saved_model.load(str(old / "exported" / "1"))
    texts = [line.split("\t")[1] for line in (old / "dev.tsv").read_text().splitlines()[1:]]
    outputs = served.signatures["serving_default"](text=tf.constant(texts))
    wanted = [list(row["probabilities"].values()) for row in expected["predictions"]]
    np.testing.assert_allclose(outputs["probabilities"], wanted, atol=2e-6)


def test_keras_file(tmp_path):
    """`version_0_1_keras.zip` was made by `make_version_0_1_keras.py`, in the same way."""
    import tf_keras

    # Files of that version name modules that have moved: what they hold is found by its import.
    from official.xlnet import XLNetPretrainer, create_optimizer  # noqa: F401
    from tests.helpers.tiny import MEMORY, random_inputs, random_windows

    with zipfile.ZipFile(ARCHIVE.with_name("version_0_1_keras.zip")) as archive:
        archive.extractall(tmp_path)
    model = tf_keras.models.load_model(tmp_path / "model.keras")
    assert isinstance(model, XLNetPretrainer)
    with np.load(tmp_path / "expected.npz", allow_pickle=False) as expected:
        outputs = model(random_inputs(0, order="all", memory=MEMORY, layers=1))
        for name, value in outputs.items():
            np.testing.assert_allclose(value, expected[name], atol=1e-5, err_msg=name)
        # The optimizer's moments are there, too.
        losses = [float(model.train_step(random_windows(step))["loss"]) for step in (1, 2)]
        np.testing.assert_allclose(losses, expected["losses"], atol=1e-4)
        assert int(model.optimizer.iterations) == 3
