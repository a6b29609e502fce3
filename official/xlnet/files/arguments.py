"""Arguments of other programs in one argument."""

from __future__ import annotations

import shlex

from official.xlnet.errors import ConfigError


def split_options(options: str, flag: str) -> list[str]:
    """Splits options as a shell does.

    Args:
      options: e.g. `--runner=DaskRunner --name="a b"`.
      flag: the flag that holds them, for the message.

    Raises:
      ConfigError: a quotation is not closed.
    """
    try:
        return shlex.split(options)
    except ValueError as error:
        raise ConfigError(f"--{flag}: expected options as in a shell: {error}") from None
