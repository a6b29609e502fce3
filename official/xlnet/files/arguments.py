"""Arguments as users give them: of the public functions, and of other programs in one flag."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import numbers
import os
import re
import shlex
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from official.xlnet.errors import ArgumentTypeError, ConfigError, StoppedError, require_config
from official.xlnet.files import file_system
from official.xlnet.files.schema import plain, shown

_CUT_URL = re.compile(r"([a-z][a-z0-9+.-]+):/(?!/)")  # What pathlib makes of a URL.
_WEIGHTED = re.compile(r"(.+):([1-9][0-9]{0,2})")
_LONGEST_NAME = 255  # Of a file, in bytes.
_LISTS = (collections.abc.Sequence, collections.abc.Iterable, list, tuple)
_NO_ITEMS, _NO_ORDER = (str, bytes, os.PathLike), (collections.abc.Mapping, collections.abc.Set)
_NUMBERS = {int: numbers.Integral, float: numbers.Real}
_P = ParamSpec("_P")
_T = TypeVar("_T")


def checks_arguments(*paths: str, **least: int) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Decorator of public functions: arguments have the types of their annotations.

    Where a string is expected, a parameter of `paths` takes an `os.PathLike`; where a list is, any
    collection; where a number is, one of NumPy. A parameter without an annotation has the type of
    its default.

    Args:
      paths: the parameters that take a path, several in a list, or a dictionary by path.
      least: the least value of numbers, by their parameter.

    Raises:
      ArgumentTypeError: an argument is of another type.
      TypeError: an argument is missing or unknown.
      StoppedError: the call was interrupted; notebooks show this `KeyboardInterrupt` in one line.
      ConfigError: a number is below its least value; a path has a NUL, or is a URL as a
        `pathlib.Path`, which removes one of its slashes.

    Example:
      >>> @checks_arguments("model", batch_size=1)
      ... def predict(model: str, inputs: Any, batch_size: int = 8): ...
    """

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        signature = inspect.signature(function)
        assert {*paths, *least} <= signature.parameters.keys()
        types_of = functools.cache(lambda: _types(function, signature))

        @functools.wraps(function)
        def checked(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                return function(*args, **kwargs)  # Python's own error names the function.
            expected = types_of()
            for name in sorted(bound.arguments, key=lambda name: name not in paths):
                value = _fit(bound.arguments[name], expected[name], name, name in paths)
                if name in least and value is not None:
                    require_config(value >= least[name], name, f"at least {least[name]}", value)
                bound.arguments[name] = value
            try:
                return function(*bound.args, **bound.kwargs)
            except KeyboardInterrupt as error:
                raise StoppedError(*error.args or ["interrupted"]) from None

        checked.__signature__ = signature  # type: ignore[attr-defined]
        return checked

    return decorate


def _types(function: Callable, signature: inspect.Signature) -> dict[str, Any]:
    found = {}
    for name, parameter in signature.parameters.items():
        has_default = parameter.default not in (None, parameter.empty)
        found[name] = type(parameter.default) if has_default else Any
    return found | typing.get_type_hints(function)


def _fit(value: Any, expected: Any, name: str, is_path: bool) -> Any:
    """The value as one of the type that is expected.

    Raises:
      ArgumentTypeError: it is of another type.
    """
    value = plain(value)
    is_union = typing.get_origin(expected) in (typing.Union, types.UnionType)
    options = typing.get_args(expected) if is_union else (expected,)
    is_table = hasattr(value, "columns") or hasattr(value, "column_names")
    is_iterable = isinstance(value, collections.abc.Iterable) and not isinstance(value, _NO_ITEMS)
    is_list = is_iterable and not is_table and not isinstance(value, _NO_ORDER)
    for option in options:
        kind, parts = typing.get_origin(option) or option, typing.get_args(option)
        if kind in (Any, typing.Literal) or isinstance(kind, TypeVar):
            return value
        if parts == (Any,) and kind in _LISTS and (is_table or is_iterable):
            return value  # Of any form; who reads it says which it takes.
        if kind in _LISTS and parts and is_list:
            return [_fit(x, parts[0], f"{name}[{n}]", is_path) for n, x in enumerate(value)]
        if kind is collections.abc.Mapping and isinstance(value, dict):
            return {_fit(key, parts[0], name, is_path): x for key, x in value.items()}
        if kind in _NUMBERS and isinstance(value, _NUMBERS[kind]) and not isinstance(value, bool):
            fits = not isinstance(value, int) or abs(value) < 2**63
            require_config(fits, name, "at most 64 bits", shown(value))
            return kind(value)
        if kind is str and is_path and isinstance(value, str | os.PathLike):
            return _path(value, name)
        if kind not in (*_LISTS, *_NUMBERS) and isinstance(value, kind):
            return value
    words = " or ".join(_words(option, is_path) for option in options)
    raise ArgumentTypeError(f"{name}: expected {words}, got {type(value).__name__} {shown(value)}")


def _path(value: str | os.PathLike, name: str) -> str:
    path = str(os.fsdecode(value))
    shown_path = f"{path!r:.60}"
    is_named = path != "" and "\0" not in path
    require_config(is_named, name, "a path that is not empty and has no NUL", shown_path)
    require_config(
        max(map(len, path.split("/"))) <= _LONGEST_NAME,
        name,
        "a path",
        f"a text of {len(path):,} characters: {shown_path}",
    )
    require_config(
        isinstance(value, str) or not _CUT_URL.match(path),
        name,
        "a URL as a string",
        f"{value!r}: pathlib removes one of the slashes after the colon",
    )
    return path


def _words(kind: Any, is_path: bool) -> str:
    if kind is str:
        return "a path" if is_path else "a string"
    origin, parts = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin in _LISTS:
        item = _words(parts[0], is_path).partition(" ")[2] if parts and parts[0] is not Any else ""
        return f"a list of {item}s" if item else "a list"
    named = {int: "an integer", float: "a number", bool: "True or False"}
    named |= {types.NoneType: "None", collections.abc.Mapping: "a dictionary"}
    return named.get(origin) or origin.__name__


def require_apart(name: str, output: Any, inputs: Sequence[Any]) -> None:
    """Raises `ConfigError` if an output would replace an input.

    Args:
      name: flag or argument with the output, for the message.
      output: path of a file or directory to write; None for none.
      inputs: paths that are read, lists of them, or None.
    """
    paths = [x for value in inputs for x in (value if isinstance(value, list) else [value])]
    for path in filter(None, paths if output else ()):
        are_there = os.path.exists(path) and os.path.exists(output)
        if path == output or (are_there and os.path.samefile(path, output)):
            raise ConfigError(
                f"{name}: expected another {'directory' if os.path.isdir(path) else 'file'} than "
                f"the input {path}, which would be lost"
            )


def weighted(path: str) -> tuple[str, int]:
    """The path and the weight of `PATH:N`; the weight is 1 without it, or if there is such a file.

    Example:
      >>> weighted("notes/*.txt:3"), weighted("web.txt")
      (('notes/*.txt', 3), ('web.txt', 1))
    """
    match = _WEIGHTED.fullmatch(path)
    if match is None or file_system.exists(path):
        return path, 1
    return match[1], int(match[2])


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
