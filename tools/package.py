"""`make release`: builds the wheel and the source distribution into dist/ and checks them.

With `--tag` as it will be tagged: without uncommitted changes, and no tag may have the name yet.
The wheel is built from the source distribution. It must contain the modules of `official/xlnet` and
`data_prep` and nothing else; both must have the license and the current version, and the changelog
must start with that version.
"""

from __future__ import annotations

import argparse
import email.message
import email.parser
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from official.xlnet import __version__

ROOT = pathlib.Path(__file__).parents[1]
NAME = "xlnet_garden"
_FILES = ("pyproject.toml", "MANIFEST.in", "README.md", "CHANGELOG.md", "LICENSE")
# Some must not be packaged: they are copied to check that they are not.
_FOLDERS = ("official", "data_prep", "configs", "tests", "benchmarks", "tools")


class PackageError(Exception):
    """A distribution must not be published; the message says why."""


def main() -> int:
    """Builds and checks the distributions; returns an exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="dist", help="directory to write to")
    parser.add_argument("--tag", help="name of the tag that the version will get")
    options = parser.parse_args()
    output = pathlib.Path(options.output)
    try:
        if options.tag:
            check_taggable(ROOT, options.tag)
        check_changelog((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), __version__)
        sdist, wheel = build(output)
        check_sdist(sdist)
        check_wheel(wheel)
    except PackageError as error:
        print(f"make release: {error}", file=sys.stderr)
        return 1
    for path in (sdist, wheel):
        print(hashlib.sha256(path.read_bytes()).hexdigest(), path)
    return 0


def check_taggable(folder: pathlib.Path, tag: str) -> None:
    """Raises `PackageError` if a checkout has uncommitted changes or already has a tag."""
    git = ["git", "-C", str(folder)]
    for arguments, expected in (
        (["status", "--porcelain"], "a checkout without uncommitted changes"),
        (["tag", "--list", tag], "a version that is not tagged yet"),
    ):
        found = subprocess.run([*git, *arguments], capture_output=True, text=True, check=True)
        if found.stdout:
            raise PackageError(f"expected {expected}, got {' '.join(found.stdout.split())}")


def build(output: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Builds both distributions from a copy of the checkout, offline.

    Args:
      output: directory to write to; created if missing.

    Returns:
      The paths of the source distribution and the wheel.

    Raises:
      PackageError: the build failed.
    """
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory)
        for name in _FILES:
            shutil.copy(ROOT / name, source)
        for name in _FOLDERS:
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        command = [sys.executable, "-m", "build", "--no-isolation", f"--outdir={output}", directory]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise PackageError(f"the build failed:\n{done.stdout}{done.stderr}")
    return paths(output)


def paths(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Paths of the source distribution and the wheel of this version in a folder."""
    stem = f"{NAME}-{__version__}"
    return folder / f"{stem}.tar.gz", folder / f"{stem}-py3-none-any.whl"


def modules() -> set[str]:
    """Paths of the packaged modules and recipes, relative to the checkout."""
    files = [*(ROOT / "official/xlnet").rglob("*.py"), *(ROOT / "data_prep").rglob("*.py")]
    files += (ROOT / "official/xlnet/recipes").rglob("*.yaml")  # A link to `configs`.
    files += (ROOT / "official/xlnet/projects").glob("*/recipes/**/*.yaml")
    return {path.relative_to(ROOT).as_posix() for path in files}


def check_wheel(path: pathlib.Path) -> None:
    """Raises `PackageError` if a wheel has missing or extra files or wrong metadata.

    `official/__init__.py` must not be included: it would overwrite that of tf-models-official.
    """
    with zipfile.ZipFile(path) as archive:
        info = f"{NAME}-{__version__}.dist-info"
        names = {name for name in archive.namelist() if not name.startswith(f"{info}/")}
        _check_same(path, modules(), names)
        if f"{info}/licenses/LICENSE" not in archive.namelist():
            raise PackageError(f"{path.name}: expected a license")
        scripts = archive.read(f"{info}/entry_points.txt").decode()
        if "xlnet = official.xlnet.cli:main" not in scripts:
            raise PackageError(f"{path.name}: expected the command xlnet, got {scripts!r}")
        _check_metadata(path, archive.read(f"{info}/METADATA").decode())


def check_sdist(path: pathlib.Path) -> None:
    """Raises `PackageError` if a source distribution has missing or extra files."""
    root = f"{NAME}-{__version__}/"
    with tarfile.open(path) as archive:
        names = {member.name.removeprefix(root) for member in archive if member.isfile()}
        metadata = archive.extractfile(root + "PKG-INFO")
        assert metadata is not None
        _check_metadata(path, metadata.read().decode())
    recipes = {p.relative_to(ROOT).as_posix() for p in (ROOT / "configs").rglob("*.yaml")}
    made = {"PKG-INFO", "setup.cfg"} | {name for name in names if ".egg-info/" in name}
    _check_same(path, {*_FILES, *modules(), *recipes}, names - made)


def check_changelog(text: str, version: str) -> None:
    """Raises `PackageError` unless the first section of a changelog is that of a version."""
    headings = re.findall(r"^## (.*)$", text, re.M)
    if not headings or headings[0].partition(" - ")[0] != version:
        got = headings[0] if headings else "no section"
        raise PackageError(f"CHANGELOG.md: expected its first section to be {version}, got {got}")


def _check_same(path: pathlib.Path, expected: set[str], found: set[str]) -> None:
    if missing := sorted(expected - found):
        raise PackageError(f"{path.name}: {', '.join(missing)} missing")
    if extra := sorted(found - expected):
        raise PackageError(f"{path.name}: {', '.join(extra)} should not be there")


def _check_metadata(path: pathlib.Path, text: str) -> None:
    metadata: email.message.Message = email.parser.Parser().parsestr(text)
    if metadata["Version"] != __version__:
        raise PackageError(
            f"{path.name}: expected version {__version__}, as official.xlnet has, "
            f"got {metadata['Version']}"
        )
    if not metadata["Requires-Python"]:
        raise PackageError(f"{path.name}: expected the versions of Python that it runs on")


if __name__ == "__main__":
    sys.exit(main())
