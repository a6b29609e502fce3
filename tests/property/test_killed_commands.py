"""Each command killed once at a random moment, by the program that kills a hundred times."""

import json
import subprocess
import sys

import pytest


@pytest.mark.nightly
def test_killed_commands_give_the_same(tmp_path):
    command = [sys.executable, "-m", "tools.kills", "--kills=10", f"--output={tmp_path / 'kills'}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    counts = json.loads(done.stdout.splitlines()[-1])
    verbs = ["vocab", "prepare", "pretrain", "finetune", "export", "convert", "extend"]
    verbs += ["embed", "score", "predict"]
    assert list(counts) == verbs
    assert all(count["kills"] == 1 and not count["violations"] for count in counts.values())
