"""Packages that only some users need, installed by extras: `xlnet-tensorflow[beam]`."""

from __future__ import annotations

import importlib.util

from official.xlnet.errors import ConfigError


def require_extra(package: str, extra: str, purpose: str) -> None:
    """Checks that an optional package is installed.

    Args:
      package: name that it is imported by.
      extra: the extra that installs it.
      purpose: what it is needed for, for the message.

    Raises:
      ConfigError: the package is not installed; the message says how to install it.

    Example:
      >>> require_extra("apache_beam", "beam", "--runner")
    """
    if importlib.util.find_spec(package) is None:
        raise ConfigError(
            f"{purpose} needs the package {package}, which is not installed: "
            f"pip install 'xlnet-tensorflow[{extra}]'"
        )
