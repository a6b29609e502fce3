"""Messages name flags on the command line, `--output`, and arguments in Python, `output`."""

from __future__ import annotations

import contextlib
import contextvars
import re
from collections.abc import Iterator

from official.xlnet.errors import XLNetError

_takes_flags = contextvars.ContextVar("takes_flags", default=False)
# Not in a name of a file; a mark after the value is of the sentence.
_FLAG = re.compile(r"(?<![^\s(])--(\w+)(=[\w.]+=[^\s;,)]*[^\s;,):.])?")


@contextlib.contextmanager
def called_with_flags() -> Iterator[None]:
    """Context manager in which messages keep their flags, as the user typed flags."""
    token = _takes_flags.set(True)
    try:
        yield
    finally:
        _takes_flags.reset(token)


def name_arguments(error: XLNetError) -> None:
    """Names arguments of Python in place of flags in the message of an error; see above."""
    if not _takes_flags.get():
        error.args = (_FLAG.sub(_argument, str(error)), *error.args[1:])


def _argument(flag: re.Match[str]) -> str:
    """The argument of Python that a flag in a message stands for.

    Example:
      >>> _FLAG.sub(_argument, "see --max_lost; --set=task.epochs=3 or --format=text")
      'see max_lost; set=["task.epochs=3"] or format=text'
    """
    return f'{flag[1]}=["{flag[2][1:]}"]' if flag[2] else flag[1]
