"""Checkpoints and steps are the same with tf_keras and with Keras 3, in processes of their own."""

import json
import os
import subprocess
import sys

import pytest

from tests.helpers.compare import assert_all_close, assert_same_items

pytestmark = pytest.mark.slow


def output_of(keras, program, *arguments):
    """The output of a program of `tests.helpers`, with Keras 2 or 3."""
    command = [sys.executable, "-m", f"tests.helpers.{program}", *map(str, arguments)]
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": str(int(keras == 2))}
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout


def run(keras, *arguments):
    """What `both_kerases` writes, with Keras 2 or 3."""
    output_of(keras, "oracles.both_kerases", *arguments)
    return json.loads(arguments[0].read_text())


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """(folder, {Keras: results of the first steps})."""
    folder = tmp_path_factory.mktemp("kerases")
    return folder, {keras: run(keras, folder / f"{keras}") for keras in (2, 3)}


def test_checkpoints_have_the_same_keys(begun):
    two, three = (begun[1][keras]["keys"] for keras in (2, 3))
    assert len(two) > 15 and all(len(keys) > 30 for keys in two.values())
    for name in two:
        assert_same_items(sorted(three[name].items()), sorted(two[name].items()))


def test_a_run_that_keras_2_began_resumes_with_keras_3(begun):
    folder, results = begun
    assert results[3]["steps"] == results[2]["steps"]  # To the bit.
    two, three = (run(keras, folder / f"again{keras}", folder / "2") for keras in (2, 3))
    assert three["steps"] == two["steps"]
    # Keras 3 reads the files of tf_keras; the other way round is a sentence.
    assert three["refused"] == {}
    for name in ("pretrainer.keras", "classifier.keras", "classifier.weights.h5"):
        assert "expected one of tf_keras, which this process uses" in two["refused"][name]
    for of_reader in (two["files"], three["files"]):
        for name, losses in results[2]["files"].items():
            # Keras 3 does not read the state of an optimizer of Keras, and warns of that.
            read = losses[:2] if name == "optimizer of Keras" else losses
            assert of_reader[name][: len(read)] == pytest.approx(read, rel=1e-5), name
            assert of_reader[name][-1] < of_reader[name][0]


def test_two_replicas_of_keras_3_are_one_device():
    """With several steps in an execution, metrics of Keras, and clipping of sums."""
    cases = json.loads(output_of(3, "replicas.two_devices"))
    assert len(cases) == 3
    for runs in cases.values():
        (losses, weights), (losses_of_two, weights_of_two) = runs["one"], runs["two"]
        assert losses_of_two == pytest.approx(losses, abs=1e-5) and len(set(losses)) > 2
        assert_all_close(weights_of_two, weights, atol=1e-5)
