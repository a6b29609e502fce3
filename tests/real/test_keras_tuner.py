"""KerasTuner searches the rate of a classifier with Keras 3: the lines of docs/keras.md."""

import json
import os
import subprocess
import sys

import pytest

from tests.helpers.documents import ROOT, blocks

AFTER = """
import json
best = tuner.get_best_hyperparameters()[0].values
trials = [trial.score for trial in tuner.oracle.trials.values()]
[model] = tuner.get_best_models()
print(json.dumps([best, trials, model.predict(texts, verbose=0).shape]))
"""


@pytest.mark.slow
def test_a_search_over_the_learning_rate(world, tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/base").symlink_to(world.pretrained)
    (code,) = (b.code for b in blocks(ROOT / "docs/keras.md") if "keras_tuner" in b.code)
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "0", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code + AFTER]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, check=True, text=True, stdout=subprocess.PIPE
    )
    best, scores, shape = json.loads(done.stdout.splitlines()[-1])
    assert 1e-5 <= best["rate"] <= 1e-3 and len(scores) == 2 and shape[1] == 2
