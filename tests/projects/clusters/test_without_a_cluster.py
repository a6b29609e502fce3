"""Runs on one device or on the devices of one machine import nothing of this project."""

import subprocess
import sys

from tests.helpers.replicas.clusters import strategies_of_replicas

CODE = """
import sys
from official.xlnet.jobs import finetuning
from official.xlnet.runtime.distribution import create_strategy
from official.xlnet.runtime.workers import Workers, workers_of
from official.xlnet.training import pretraining

for name in ("one_device", "mirrored"):
    strategy = create_strategy(name)
    assert type(workers_of(strategy)) is Workers, strategy
print(*[name for name in sys.modules if name.startswith("official.xlnet.projects.clusters")])
"""


def test_other_strategies_import_nothing_of_this_project():
    assert strategies_of_replicas() == ["mirrored", "multi_worker"]
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
