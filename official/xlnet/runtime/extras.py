"""Checks for optional packages, which are installed by extras such as `beam`."""

from __future__ import annotations

import importlib.util

from official.xlnet.errors import ConfigError, how_to_install


def require_extra(package: str, extra: str, purpose: str) -> None:
    """Checks that an optional package is installed, without importing it.

    Args:
      package: import name of the package.
      extra: extra of this project that installs it.
      purpose: the flag or file that needs it, for the error message.

    Raises:
      ConfigError: the package is not installed. The message says how to install it.

    Example:
      >>> require_extra("apache_beam", "beam", "--runner")
    """
    if importlib.util.find_spec(package) is None:
        raise ConfigError(
            f"{purpose} needs the package {package}, which is not installed: "
            f"{how_to_install(extra)}"
        )
