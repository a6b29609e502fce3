"""Paths as users give them: objects of `pathlib`, and names with any characters."""

from __future__ import annotations

import contextlib
import functools
import inspect
import numbers
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from official.xlnet.errors import ConfigError

_PATTERN_CHARACTERS = re.compile(r"[*?\[\]\\{}]")
_CUT_URL = re.compile(r"([a-z][a-z0-9+.-]+):/(?!/)")  # What pathlib makes of a URL.
_P = ParamSpec("_P")
_T = TypeVar("_T")


def accepts_paths(*names: str) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Decorator of public functions: `os.PathLike` arguments become strings.

    Args:
      names: the parameters that take a path, several in a list, or a dictionary by path.

    Raises:
      ConfigError: a URL was made a `pathlib.Path`, which removes one of its slashes.
      TypeError: a path is bytes or a number.

    Example:
      >>> @accepts_paths("model")
      ... def predict(model: str, inputs): ...
    """

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        signature = inspect.signature(function)
        assert set(names) <= signature.parameters.keys()
        required = {
            name
            for name in names
            if signature.parameters[name].default is not None
            and "None" not in str(signature.parameters[name].annotation)
        }

        @functools.wraps(function)
        def with_strings(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                return function(*args, **kwargs)  # Python's own error names the function.
            for name in names:
                if name in bound.arguments:
                    bound.arguments[name] = _as_string(bound.arguments[name], name)
            for name in required & bound.arguments.keys():
                if bound.arguments[name] is None:
                    raise TypeError(f"{name}: expected a path, got None")
            return function(*bound.args, **bound.kwargs)

        return with_strings

    return decorate


def _as_string(value: Any, name: str) -> Any:
    """A path as a string, and those in a list or dictionary; other values as they are."""
    if isinstance(value, os.PathLike):
        path = os.fsdecode(value)
        if _CUT_URL.match(path):
            raise ConfigError(
                f"{name}: expected a URL as a string, got {value!r}: pathlib removes one of the "
                "slashes after the colon"
            )
        return path
    if isinstance(value, bytes | numbers.Number):
        raise TypeError(f"{name}: expected a path, got {type(value).__name__} {value!r:.60}")
    if type(value) in (list, tuple):
        paths = [_as_string(x, name) if isinstance(x, os.PathLike) else x for x in value]
        return type(value)(paths)
    if type(value) is dict:
        return {_as_string(key, name): x for key, x in value.items()}
    return value


@contextlib.contextmanager
def plain_folder(folder: str) -> Iterator[str]:
    """Yields a path to the same folder that TensorFlow does not take for a pattern.

    TensorFlow looks for the files of a checkpoint by a pattern that the folder's path is part of; a
    `[` in it then means something else. Where there are such characters, a symbolic link stands
    for the folder.

    Args:
      folder: a path of a folder, which may be made later.

    Example:
      >>> with plain_folder("models/a[1]") as folder:
      ...     tf.train.load_checkpoint(os.path.join(folder, "ckpt-7"))
    """
    if not _PATTERN_CHARACTERS.search(os.path.abspath(folder)):
        yield folder
        return
    with tempfile.TemporaryDirectory() as directory:
        link = os.path.join(directory, "folder")
        os.symlink(os.path.abspath(folder), link, target_is_directory=True)
        yield link
