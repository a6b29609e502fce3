"""The wheel holds our packages only, and works next to an installed tf-models-official."""

import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, so that the checkout gets no build directories; needs no network."""
    directory = tmp_path_factory.mktemp("wheel")
    source = directory / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("official", "data_prep", "tests", "benchmarks", "tools"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    command = ["-m", "build", "--no-isolation", "--wheel", "--outdir", directory / "dist", source]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return next((directory / "dist").glob("*.whl"))


def test_wheel_holds_every_module_of_ours_and_nothing_else(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    ours = [*(ROOT / "official/xlnet").rglob("*.py"), *(ROOT / "data_prep").rglob("*.py")]
    assert names == {str(path.relative_to(ROOT)) for path in ours}
    assert "official/__init__.py" not in names


def test_installed_wheel_and_tf_models_official_both_import(wheel, tmp_path):
    # An installed wheel lies in site-packages, inside the `official` folder of
    # tf-models-official. Here a folder with a link to each entry of that one stands in for it.
    import official.modeling

    theirs = pathlib.Path(official.modeling.__file__).parents[1]
    (tmp_path / "official").mkdir()
    for entry in theirs.iterdir():
        if entry.name not in ("xlnet", "__pycache__"):
            (tmp_path / "official" / entry.name).symlink_to(entry)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    program = (
        "import official.xlnet, official.modeling, data_prep.atomic;"
        "from official.xlnet.configs.experiment import XLNetConfig;"
        "from official.modeling import hyperparams;"
        "assert issubclass(XLNetConfig, hyperparams.Config);"
        "print(official.__file__, official.xlnet.__file__, data_prep.atomic.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "TF_CPP_MIN_LOG_LEVEL": "3", "TF_USE_LEGACY_KERAS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert all(part.startswith(str(tmp_path)) for part in done.stdout.split()), done.stdout
