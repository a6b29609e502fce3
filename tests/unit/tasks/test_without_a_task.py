"""A task is a folder: a tree without the folder of a task lacks that task and nothing else."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.helpers.documents import ROOT

pytestmark = pytest.mark.slow

CODE = """
import official.xlnet, pytest, sys
from official.xlnet.configs import registry
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import ConfigError

assert official.xlnet.__file__.startswith(sys.argv[1])
for table in (registry.TASKS, registry.HEADS, registry.SERVICES, registry.FILE_READERS):
    assert "ranking" not in table.names() and "multiple_choice" in table.names()
assert "qnli_ranking" not in registry.DATASETS.names() and "race" in registry.DATASETS.names()
with pytest.raises(ConfigError, match="unknown key 'task.scoring'"):
    XLNetConfig.from_dict({"task": {"scoring": "summary"}})
XLNetConfig.from_dict({"task": {"name": "question_answering"}})
"""


def test_without_ranking(tmp_path):
    for folder in ("official", "data_prep", "configs", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "*ranking*")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    result = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]
