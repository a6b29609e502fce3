"""Ranges, lock, supported Pythons and public files say the same; wrong Pythons are refused."""

import os
import pathlib
import re
import subprocess
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from official.xlnet import __version__
from tools import try_install

ROOT = pathlib.Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
PYTHONS = ("3.11", "3.12", "3.13")
NOT_LOCKED = ("cuda",)  # Gigabytes that only machines with GPUs need.


def lock():
    """{name: requirement} of the lock."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pinned = [line.removesuffix("\\") for line in lines if re.match(r"[\w.-]+.*==", line)]
    requirements = map(Requirement, pinned)
    return {re.sub(r"[-_.]+", "-", entry.name).lower(): entry for entry in requirements}


def test_every_dependency_that_users_get_has_a_lower_bound():
    extras = [lines for name, lines in EXTRAS.items() if name not in ("dev", "docs")]
    for requirement in map(Requirement, sum(extras, PROJECT["dependencies"])):
        operators = {specifier.operator for specifier in requirement.specifier}
        assert requirement.name == PROJECT["name"] or operators & {">=", "=="}, requirement


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_holds_what_is_declared_on_every_python(python):
    locked = lock()
    environment = {"python_version": python, "python_full_version": f"{python}.1"}
    lists = [lines for extra, lines in EXTRAS.items() if extra not in NOT_LOCKED]
    for requirement in map(Requirement, sum(lists, PROJECT["dependencies"])):
        if requirement.name == PROJECT["name"]:
            continue
        entry = locked[re.sub(r"[-_.]+", "-", requirement.name).lower()]
        (pin,) = entry.specifier
        assert Version(pin.version) in requirement.specifier, f"{entry}: {requirement}"
        assert entry.marker is None or entry.marker.evaluate(environment), entry


def test_the_lock_has_hashes_and_names_no_host():
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    assert all(f"{entry.name}==" in text for entry in lock().values())
    assert text.count("==") <= text.count("--hash=sha256:")


def test_supported_pythons_are_the_same_everywhere():
    supported = SpecifierSet(PROJECT["requires-python"])
    minors = [f"3.{minor}" for minor in range(8, 20) if f"3.{minor}.0" in supported]
    assert minors == [*PYTHONS]
    assert [line[-4:] for line in PROJECT["classifiers"] if "Python ::" in line] == minors
    assert tuple(f"python{minor}" for minor in minors) == try_install.PYTHONS
    for name, program in (("nightly", "make test-all"), ("ci", ".ci/run")):
        workflow = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text())
        job, *_ = workflow["jobs"].values()
        assert [step["run"] for step in job["steps"] if "run" in step] == [program]
    assert job["strategy"]["matrix"]["python"] == minors


def test_the_version_is_in_one_place():
    """Apart from `official.xlnet`, nothing names it: it would be wrong after the next."""
    assert "version" in PROJECT["dynamic"] and Version(__version__)
    files = ["pyproject.toml", "MODULE.bazel", "CITATION.cff", "README.md", "mkdocs.yml"]
    files += [path for kind in ("docs/*.md", "tools/**/*.*") for path in ROOT.glob(kind)]
    files = [path for path in files if not str(path).endswith(".pyc")]
    named = [path for path in files if __version__ in (ROOT / path).read_text(encoding="utf-8")]
    assert named == []


def test_nothing_says_to_install_this_package_from_an_index():
    """No index has it: whoever follows such advice gets what a stranger has put there."""
    names = re.escape(PROJECT["name"]).replace("\\-", "[-_]")
    from_index = re.compile(rf"pip install[^\n]*[ '\"](xlnet|{names})(\[|['\"\s]|$)", re.MULTILINE)
    assert from_index.search(f"pip install -U '{PROJECT['name']}[s3]'")
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("official/xlnet/**/*.py")]
    files += [*ROOT.glob("data_prep/**/*.py"), *ROOT.glob("tools/**/*"), ROOT / "Makefile"]
    files = [path for path in files if path.is_file() and path.suffix != ".pyc"]
    texts = {path: path.read_text() for path in files}
    assert [str(path) for path, text in texts.items() if from_index.search(text)] == []


def test_another_python_is_refused_at_once_in_one_sentence(tmp_path):
    for name in ("python3.11", "python3.12", "python3.13", "python3", "python"):
        program = tmp_path / name
        program.write_text(
            '#!/bin/sh\n[ "$1" = --version ] && echo Python 3.10.13 && exit\nexit 1\n'
        )
        program.chmod(0o755)
    done = subprocess.run(
        [ROOT / "tools/setup_environment.sh", tmp_path / "venv"],
        env=os.environ | {"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "needs Python 3.11, 3.12 or 3.13; found: Python 3.10.13." in done.stderr
    assert not (tmp_path / "venv").exists()
