"""Extensions: modules of others that `--import` names, which register their components."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from official.xlnet.commands.flag_uses import uses_of
from official.xlnet.errors import ConfigError


def import_extensions(arguments: Sequence[str]) -> None:
    """Imports the extensions that arguments name, before their verb is known.

    Args:
      arguments: the arguments of a verb.
    """
    for use in uses_of("import", arguments, is_switch=False):
        for name in use.value.split(","):
            import_extension(name)


def import_extension(name: str) -> None:
    """Imports an extension module, which registers its components on import.

    Args:
      name: dotted name of a module that is installed, in PYTHONPATH or in the current directory.

    Raises:
      ConfigError: the module does not exist.
    """
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # A module that the extension itself imports is missing.
        raise ConfigError(
            f"--import={name}: expected a module in the current directory, in PYTHONPATH or "
            f"installed; {error.msg}"
        ) from None
