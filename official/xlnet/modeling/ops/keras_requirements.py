"""What this package requires of Keras 3: its backend, and the least version in `pyproject.toml`."""

from __future__ import annotations

import pathlib
import re

from official.xlnet.errors import require_config

_PROJECT_FILE = pathlib.Path(__file__).parents[4] / "pyproject.toml"
_REQUIREMENT = r"^\W*keras\W*>=\s*([\d.]+)"


def require_backend(backend: str) -> None:
    """Raises `ConfigError` for another backend of Keras than TensorFlow."""
    expected = "tensorflow, as the kernels of this package are TensorFlow's"
    require_config(backend == "tensorflow", "KERAS_BACKEND", expected, backend)


def require_version(version: str) -> None:
    """Raises `ConfigError` for a version of Keras before the least one."""
    least = least_version()
    is_enough = least is None or _numbers(version) >= _numbers(least)
    expected = f"version {least} or later: pip install 'keras>={least}'"
    require_config(is_enough, "keras", expected, version)


def least_version() -> str | None:
    """The least version of Keras, as the checkout or the installed package declares it."""
    if _PROJECT_FILE.exists():
        requirements = _PROJECT_FILE.read_text(encoding="utf-8").splitlines()
    else:
        import importlib.metadata

        try:
            requirements = importlib.metadata.requires("xlnet-garden") or []
        except importlib.metadata.PackageNotFoundError:
            return None
    matches = [re.match(_REQUIREMENT, requirement) for requirement in requirements]
    return next((match.group(1) for match in matches if match), None)


def _numbers(version: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(map(int, re.findall(r"\d+", version)[:2]))
