"""What version 1.0.0 wrote still loads, and gives the values that version 1.0.0 gave.

`tests/fixtures/version_1_0.zip` was written by that version: a data set, a pre-trained model that
was stopped after half of its steps, a classifier fine-tuned from it, a `.keras` file, and
`expected.json` with what the commands then reported.
"""

import json
import pathlib
import shutil
import zipfile

import numpy as np
import pytest

from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras
from tests.helpers.tiny import MEMORY, random_inputs, random_windows
from tests.helpers.world import command, eagerly

ARCHIVE = pathlib.Path(__file__).parents[1] / "fixtures" / "version_1_0.zip"


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    directory = tmp_path_factory.mktemp("version_1_0")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(directory)
    for model in ("pretrained", "classifier"):
        shutil.copy(directory / "records/spiece.model", directory / model)
    return directory


@pytest.fixture(scope="module")
def expected(old):
    return json.loads((old / "expected.json").read_text())


def test_a_run_is_evaluated(old, expected):
    got = command("evaluate", model=old / "pretrained", data=old / "records")
    assert got == pytest.approx(expected["evaluate"], 1e-5)


@pytest.mark.slow
def test_a_run_continues(old, expected, tmp_path):
    data, model = old / "records", shutil.copytree(old / "pretrained", tmp_path / "model")
    with eagerly():
        got = command("pretrain", config=old / "pretrain.yaml", data=data, output=model, steps=12)
    for name in ("step", "loss"):
        assert got[name] == pytest.approx(expected["continued"][name], rel=1e-5)
    got = command("evaluate", model=model, data=data)
    assert got == pytest.approx(expected["evaluate_continued"], rel=1e-5)


@pytest.mark.usefixtures("eager")
def test_fine_tuned_model(old, expected, tmp_path):
    got = command("evaluate", model=old / "classifier", data=old / "dev.tsv")
    got = {name: got[name] for name in expected["evaluate_task"]}
    assert got == pytest.approx(expected["evaluate_task"], rel=1e-5)
    output = tmp_path / "predictions.jsonl"
    command("predict", model=old / "classifier", input=old / "dev.tsv", output=output)
    for line, wanted in zip(output.read_text().splitlines(), expected["predictions"], strict=True):
        got = json.loads(line)
        assert (got["id"], got["label"]) == (wanted["id"], wanted["label"])
        assert got["probabilities"] == pytest.approx(wanted["probabilities"], abs=2e-6)


def test_keras_file(old):
    # What the file holds is found by its import.
    from official.xlnet import XLNetPretrainer, create_optimizer  # noqa: F401

    model = keras.models.load_model(old / "model.keras")
    assert isinstance(model, XLNetPretrainer)
    with np.load(old / "expected.npz", allow_pickle=False) as expected:
        inputs = random_inputs(0, order="all", memory=MEMORY)
        for name, value in model(inputs).items():
            np.testing.assert_allclose(value, expected[name], atol=1e-5, err_msg=name)
        # The optimizer's moments are there, too.
        losses = [float(model.train_step(random_windows(step))["loss"]) for step in (1, 2)]
        wanted = expected["losses"]  # Means over all steps, the one before the file, too.
        if IS_KERAS_3:  # Has no means in files: the loss of the last step alone.
            losses, wanted = 2 * losses[1] - losses[0], 3 * wanted[1] - 2 * wanted[0]
        np.testing.assert_allclose(losses, wanted, atol=1e-4)
        assert int(model.optimizer.iterations) == 3
