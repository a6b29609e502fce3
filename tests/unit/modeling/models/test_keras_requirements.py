"""The least version of Keras and its backend."""

import importlib.metadata
import os
import subprocess
import sys
import tomllib

import pytest

from official.xlnet.errors import ConfigError
from official.xlnet.modeling.ops import keras_requirements


def test_versions_before_the_declared_one_are_refused(monkeypatch, tmp_path):
    with open("pyproject.toml", "rb") as file:
        dependencies = tomllib.load(file)["project"]["dependencies"]
    (least,) = [x.removeprefix("keras>=") for x in dependencies if x.startswith("keras>=")]
    assert keras_requirements.least_version() == least
    major, minor = map(int, least.split("."))
    for version in (least, f"{major}.{minor}.3", f"{major}.{minor + 1}.0", f"{major + 1}.0.0"):
        keras_requirements.require_version(version)
    for version in (f"{major}.{minor - 1}.9", f"{major}.8.0", f"{major - 1}.{minor + 9}.0"):
        message = f"keras: expected version {least} or later: .*, got {version}"
        with pytest.raises(ConfigError, match=message):
            keras_requirements.require_version(version)
    # Without a checkout, of the installed package.
    monkeypatch.setattr(keras_requirements, "_PROJECT_FILE", tmp_path / "pyproject.toml")
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: ["absl-py>=1.4", "keras>=9.7"])
    assert keras_requirements.least_version() == "9.7"


@pytest.mark.slow
def test_a_backend_that_is_not_installed_is_told():
    code = "from official.xlnet import XLNetEncoder"
    environment = os.environ | {"KERAS_BACKEND": "none_such", "TF_USE_LEGACY_KERAS": "0"}
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    expected = "KERAS_BACKEND: expected tensorflow, as the kernels of this package are TensorFlow's"
    assert f"{expected}, got none_such" in result.stderr
