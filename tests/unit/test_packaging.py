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
    users = [*PROJECT["dependencies"]]
    users += [
        line for extra in ("beam", "cuda", "dask", "gcs", "parquet", "s3") for line in EXTRAS[extra]
    ]
    for requirement in map(Requirement, users):
        if requirement.name != PROJECT["name"]:
            assert any(s.operator in (">=", "==") for s in requirement.specifier), requirement


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
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    (job,) = workflow["jobs"].values()
    assert job["strategy"]["matrix"]["python"] == minors
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]


def test_the_version_is_in_one_place():
    """Apart from `official.xlnet`, nothing names it: it would be wrong after the next."""
    assert "version" in PROJECT["dynamic"] and Version(__version__)
    files = ["pyproject.toml", "MODULE.bazel", "CITATION.cff", "README.md", "mkdocs.yml"]
    files += [path for kind in ("docs/*.md", "tools/**/*.*") for path in ROOT.glob(kind)]
    named = [path for path in files if __version__ in (ROOT / path).read_text(encoding="utf-8")]
    assert named == []


def test_the_first_commands_of_the_readme_are_five():
    """`make release` runs them."""
    verbs = [words[0] for words in try_install.readme_commands()]
    assert verbs == ["vocab", "prepare", "pretrain", "evaluate", "generate"]


def test_nothing_says_to_install_this_package_from_an_index():
    """No index has it: whoever follows such advice gets what a stranger has put there."""
    names = re.escape(PROJECT["name"]).replace("\\-", "[-_]")
    from_index = re.compile(rf"pip install[^\n]*[ '\"](xlnet|{names})(\[|['\"\s]|$)", re.MULTILINE)
    assert from_index.search(f"pip install -U '{PROJECT['name']}[s3]'")
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("official/xlnet/**/*.py")]
    files += [*ROOT.glob("data_prep/**/*.py"), *ROOT.glob("tools/**/*"), ROOT / "Makefile"]
    texts = {path: path.read_text() for path in files if path.is_file()}
    assert [str(path) for path, text in texts.items() if from_index.search(text)] == []


@pytest.mark.parametrize("given", [True, False])
def test_another_python_is_refused_at_once_in_one_sentence(tmp_path, given):
    for name in ("python3.11", "python3.12", "python3.13", "python3", "python"):
        program = tmp_path / name
        program.write_text(
            '#!/bin/sh\n[ "$1" = --version ] && echo Python 3.10.13 && exit\nexit 1\n'
        )
        program.chmod(0o755)
    done = subprocess.run(
        [ROOT / "tools/setup_environment.sh", tmp_path / "venv", *["python3"] * given],
        env=os.environ | {"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "needs Python 3.11, 3.12 or 3.13; found: Python 3.10.13." in done.stderr
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize(
    ("error", "flags", "status", "report"),
    [
        (None, [], 0, "lowest-direct: fine"),
        (try_install.InstallError("no numpy"), [], 1, "FAILED: no numpy"),
        (try_install.InstallError("no numpy"), ["--allow-offline"], 1, "FAILED: no numpy"),
        (try_install.OfflineError("no index"), ["--allow-offline"], 0, "SKIPPED"),
        (try_install.OfflineError("no index"), [], 1, "SKIPPED"),
    ],
)
def test_what_an_installation_that_failed_comes_to(
    monkeypatch, capsys, error, flags, status, report
):
    def install(wheel, python, resolution):
        if error is not None and resolution == "lowest-direct":
            raise error
        return "fine"

    monkeypatch.setattr(try_install, "try_install", install)
    monkeypatch.setattr(try_install.package, "build", lambda output: (output, output))
    monkeypatch.setattr("sys.argv", ["try_install", "--here", *flags])
    assert try_install.main() == status
    lines = capsys.readouterr().out.splitlines()
    assert "highest: fine" in lines[0] and report in lines[1]


def test_a_program_that_fails_is_quoted(tmp_path):
    with pytest.raises(try_install.InstallError, match=r"status 3\nwent wrong"):
        try_install._run(["sh", "-c", "echo went wrong >&2; exit 3"], tmp_path)
