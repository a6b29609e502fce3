"""What is published holds our packages only, and works next to an installed tf-models-official."""

import pathlib
import subprocess
import sys
import tarfile
import zipfile

import pytest

from official.xlnet import __version__
from tools import package

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The source distribution and the wheel; building them needs no network."""
    return package.build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def wheel(distributions):
    return distributions[1]


def test_wheel_holds_every_module_of_ours_and_nothing_else(wheel):
    package.check_wheel(wheel)
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {"official/xlnet/cli.py", "data_prep/settings.py"} < names
    assert {name.split("/")[0] for name in names} == {"official", "data_prep"}
    assert "official/__init__.py" not in names


def test_source_distribution_holds_what_the_wheel_is_built_from_and_the_recipes(distributions):
    package.check_sdist(distributions[0])
    with tarfile.open(distributions[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CHANGELOG.md", "configs/tiny.yaml", "official/xlnet/cli.py"} < names
    assert not any(name.startswith(("tests", "benchmarks", "tools")) for name in names)


INFO = f"{package.NAME}-{__version__}.dist-info"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"official/xlnet/cli.py": None}, r"official/xlnet/cli.py missing"),
        ({"tests/a.py": b"", "official/__init__.py": b""}, "a.py should not be there"),
        ({f"{INFO}/licenses/LICENSE": None}, "expected a license"),
        ({f"{INFO}/METADATA": b"Version: 9.9\n\n"}, f"expected version {__version__}, .* got 9.9"),
    ],
)
def test_a_wheel_that_is_not_to_be_published(wheel, tmp_path, changes, message):
    with (
        zipfile.ZipFile(wheel) as archive,
        zipfile.ZipFile(tmp_path / wheel.name, "w") as changed,
    ):
        files = {name: archive.read(name) for name in archive.namelist()} | changes
        for name, data in files.items():
            if data is not None:
                changed.writestr(name, data)
    with pytest.raises(package.PackageError, match=message):
        package.check_wheel(tmp_path / wheel.name)


def test_the_changelog_opens_with_the_version():
    text = (package.ROOT / "CHANGELOG.md").read_text()
    _, marker, released = text.partition("## Unreleased\n")  # Its heading is the next version's.
    package.check_changelog(released if marker else text, __version__)
    with pytest.raises(package.PackageError, match=r"expected its first section to be 1\.2"):
        package.check_changelog("## 1.1\n\n## 1.2\n", "1.2")


def test_a_version_is_tagged_once_and_as_it_is_committed(tmp_path):
    def git(*arguments):
        names = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", "-C", tmp_path, *names, *arguments], check=True, capture_output=True)

    git("init")
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(package.PackageError, match=r"without uncommitted changes, got \?\? a.txt"):
        package.check_taggable(tmp_path, "v1.2.3")
    git("add", ".")
    git("commit", "-m", "First")
    package.check_taggable(tmp_path, "v1.2.3")
    git("tag", "v1.2.3")
    package.check_taggable(tmp_path, "v1.2")
    with pytest.raises(package.PackageError, match=r"not tagged yet, got v1\.2\.3"):
        package.check_taggable(tmp_path, "v1.2.3")


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
        "import official.xlnet, official.modeling, data_prep.settings;"
        "print(official.__file__, official.xlnet.__file__, data_prep.settings.__file__)"
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
