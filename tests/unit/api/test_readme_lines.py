"""The README's lines in Python, on a TF1 release as it is; at most five lines each."""

import numpy as np
import pytest

from official import xlnet
from tests.helpers import checkpoints
from tests.helpers.documents import ROOT, blocks

pytestmark = pytest.mark.slow

LINES = [
    block.code
    for block in blocks(ROOT / "README.md")
    if block.language == "python" and "runs/base" in block.code
]


@pytest.fixture(scope="module")
def names(tmp_path_factory, vocab_file):
    """All names that the lines define, after they have run in their order."""
    directory = tmp_path_factory.mktemp("readme")
    (directory / "runs").mkdir()
    values = checkpoints.random_values(checkpoints.tf1_shapes())
    checkpoints.write_tf1(directory / "runs/base", vocab_file, values)
    names = {"here": directory}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        for code in LINES:
            code = code.replace(
                'output="runs/film"', 'output="runs/film", overrides=["num_steps=2"]'
            )
            exec(code.replace('"num_steps=2"', '"num_steps=2", "warmup_steps=0"'), names)
    return names


def test_hidden_states_and_vectors(names):
    assert names["hidden_states"].shape[::2] == (2, 22)
    directory = names["here"] / "runs/base"
    cls = xlnet.embed(str(directory), names["texts"], pooling="cls")
    np.testing.assert_allclose(names["hidden_states"][:, -1], cls, atol=1e-5)
    assert names["vectors"].shape == (2, 22) and names["similarity"].shape == (2, 2)


def test_fine_tuned(names):
    assert names["label"] in ("good", "bad")
    assert names["metrics"]["train_examples"] == 32
