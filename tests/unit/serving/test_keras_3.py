"""An export as a layer of Keras 3, in a process where `tf.keras` is Keras 3: docs/keras.md."""

import os
import subprocess
import sys

import numpy as np
import pytest

from official import xlnet
from official.xlnet.data.examples import TextExample
from official.xlnet.inference.task_prediction import load_task, predict_examples
from tests.helpers.documents import ROOT, blocks
from tests.helpers.served_models import random_task, save_task

pytestmark = pytest.mark.slow

TEXTS = ["A fine film.", "Dull, but not long."]


def test_the_lines_of_the_page(tmp_path):
    model, _ = random_task("classification")
    directory = save_task(model, str(tmp_path / "model"))
    xlnet.export(directory, str(tmp_path / "served/film"), lengths=[8, 16])
    (code,) = (b.code for b in blocks(ROOT / "docs/keras.md") if "TFSMLayer" in b.code)
    code += f"\nimport numpy\nnumpy.save('found.npy', model({TEXTS!r})['probabilities'])\n"
    code += "import tensorflow\nassert tensorflow.keras.__version__.startswith('3')\n"
    environment = {k: v for k, v in os.environ.items() if k != "TF_USE_LEGACY_KERAS"}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    examples = [TextExample(str(n), (text,)) for n, text in enumerate(TEXTS)]
    expected = [
        list(row["probabilities"].values())
        for row in predict_examples(*load_task(directory), examples)
    ]
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), expected, atol=1e-5)
