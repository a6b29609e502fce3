"""Runs go on and models answer with the other Keras, in a process of its own, through the verbs."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from official.xlnet import cli
from official.xlnet.modeling.ops.keras import IS_KERAS_3
from tests.helpers.runs import interrupt, losses_of
from tests.helpers.world import command

VERBS = """
import json, sys
from official.xlnet import cli
sys.exit(max(cli.main(words) for words in json.load(sys.stdin)))
"""


def with_the_other(*commands):
    """Runs commands with the Keras that this process does not have."""
    other = "1" if IS_KERAS_3 else "0"
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": other}
    program, words = [sys.executable, "-c", VERBS], json.dumps(commands)
    subprocess.run(program, input=words, text=True, env=environment, check=True)


def numbers(tree):
    """All numbers of nested rows, in order."""
    if isinstance(tree, dict | list):
        children = tree.values() if isinstance(tree, dict) else tree
        return [number for child in children for number in numbers(child)]
    return [float(tree)] if isinstance(tree, int | float) else []


@pytest.mark.slow
def test_runs_and_models_of_one_keras_are_those_of_the_other(
    world, interrupts, tmp_path, monkeypatch
):
    task, texts = world.task("classification"), tmp_path / "texts.txt"
    texts.write_text("The cat sat.\nAnd then people find water\n")
    here, there, tuned = (tmp_path / name for name in ("here", "there", "tuned"))
    pretrain = ["pretrain", f"--config={world.config}", f"--data={world.data}"]
    finetune = ["finetune", *world.finetune_flags("classification"), f"--output={tuned}"]

    def answers(folder):
        folder.mkdir()
        of_task = [f"--model={task.model}", f"--input={task.dev}"]
        of_texts = [f"--model={world.pretrained}", f"--input={texts}"]
        return [
            ["predict", *of_task, f"--output={folder}/p.jsonl"],
            ["score", *of_texts, f"--output={folder}/s.jsonl"],
            ["generate", *of_texts, "--num_tokens=5", f"--output={folder}/g.jsonl"],
            ["embed", *of_texts, f"--output={folder}/e.npy"],
        ]

    assert cli.main([*pretrain, f"--model_dir={here}", "--steps=33"]) == 0
    interrupt(monkeypatch, {33: None})
    assert cli.main(finetune) == cli.EXIT_INTERRUPTED
    with_the_other(
        [*pretrain, f"--model_dir={here}"],
        [*pretrain, f"--model_dir={there}", "--steps=33"],
        finetune,
        *answers(tmp_path / "other"),
    )
    assert command(*pretrain, model_dir=there)["step"] == 60
    for run, whole in ((here, world.pretrained), (there, world.pretrained), (tuned, task.model)):
        assert len(losses_of(run)) == 60
        np.testing.assert_allclose(losses_of(run), losses_of(whole), atol=1e-5)

    for words in answers(tmp_path / "own"):
        assert cli.main(words) == 0
    for file in sorted((tmp_path / "own").glob("*.jsonl")):
        own, other = (
            [json.loads(line) for line in path.read_text().splitlines()]
            for path in (file, tmp_path / "other" / file.name)
        )
        if file.name == "g.jsonl":
            assert own == other
        else:
            assert numbers(own) and numbers(other) == pytest.approx(numbers(own), abs=2e-6)
    own, other = (np.load(tmp_path / folder / "e.npy") for folder in ("own", "other"))
    np.testing.assert_allclose(other, own, rtol=0, atol=1e-6)
