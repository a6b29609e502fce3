"""Paths among the arguments of functions and flags: their types, and what some of them hold."""

from __future__ import annotations

import dataclasses
import os
import re
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from official.xlnet.errors import ConfigError, require_config
from official.xlnet.files import file_system

_CUT_URL = re.compile(r"([a-z][a-z0-9+.-]*):/(?!/)")  # What pathlib makes of a URL.
_WEIGHTED = re.compile(r"(.+):([1-9][0-9]{0,2})")
_LONGEST_NAME = 255  # Of a file, in bytes.


@dataclasses.dataclass(frozen=True)
class PathRule:
    """Rule: a path, as a string or an `os.PathLike`; `~` is the home directory.

    Attributes:
      use: what a function does with it, which decides how a URL becomes a local path for the
        call, see `files.public`: `read`, `write` (a file), `write_directory` (whose present files
        are known to the function by name only) or `resume` (a directory that it goes on with).
        `any`: the function itself takes URLs.
    """

    use: str
    takes_paths = True

    def check(self, value: str | os.PathLike, where: str) -> str:
        """Returns the path as a string.

        Raises:
          ConfigError: it is empty, has a NUL, is a text rather than a path, or a URL as a
            `pathlib.Path`, which removes one of its slashes.
        """
        path = str(os.fsdecode(value))
        shown_path = f"{path!r:.60}"
        is_named = path != "" and "\0" not in path
        require_config(is_named, where, "a path that is not empty and has no NUL", shown_path)
        got = f"a text of {len(path):,} characters: {shown_path}"
        require_config(max(map(len, path.split("/"))) <= _LONGEST_NAME, where, "a path", got)
        is_whole = isinstance(value, str) or not _CUT_URL.match(path)
        got = f"{value!r}: pathlib removes one of the slashes after the colon"
        require_config(is_whole, where, "a URL as a string", got)
        return os.path.expanduser(path)


@dataclasses.dataclass(frozen=True)
class OutputRule:
    """Rule: an output file is not a directory that exists, and an output directory not a file.

    Attributes:
      is_directory: whether the output is a directory.
    """

    is_directory: bool

    def check(self, path: str, where: str) -> None:
        if self.is_directory:
            is_file = os.path.exists(path) and not os.path.isdir(path)
            require_config(not is_file, where, "a directory", f"the file {path!r}")
        else:
            require_config(not os.path.isdir(path), where, "a file", f"the directory {path!r}")


@typing.runtime_checkable
class DataFrame(typing.Protocol):
    """A data frame of pandas, or a data set of HF `datasets`."""

    def to_parquet(self, path: Any) -> Any:
        """Writes a Parquet file."""


@typing.runtime_checkable
class Strategy(typing.Protocol):
    """A `tf.distribute.Strategy`, without importing TensorFlow."""

    def run(self, fn: Any, args: Any = (), kwargs: Any = None, options: Any = None) -> Any:
        """Runs a function on each replica."""

    def reduce(self, reduce_op: Any, value: Any, axis: Any) -> Any:
        """Reduces a value over the replicas."""

    def scope(self) -> Any:
        """Context manager in which variables belong to the strategy."""


Path = Annotated[str, PathRule("read")]
OutputFile = Annotated[str, PathRule("write"), OutputRule(is_directory=False)]
OutputDirectory = Annotated[str, PathRule("write_directory"), OutputRule(is_directory=True)]
RunDirectory = Annotated[str, PathRule("resume"), OutputRule(is_directory=True)]
AnyPath = Annotated[str, PathRule("any")]
AnyOutputDirectory = Annotated[str, PathRule("any"), OutputRule(is_directory=True)]
STANDARD = "-"  # Standard input or output, in the place of a file.
COMMAS = "separated by commas"  # A list that is one flag; others repeat it.
IN_PYTHON = "in Python"  # A type that no flag has.


def require_outputs_apart(arguments: Mapping[str, Any], uses: Mapping[str, str]) -> None:
    """Raises `ConfigError` if an output of a call would replace one of its inputs.

    Args:
      arguments: {parameter: value}.
      uses: {parameter with paths: their use}, see `PathRule`.
    """
    inputs = [arguments[name] for name, use in uses.items() if use == "read"]
    for name, use in uses.items():
        if use in ("write", "write_directory"):
            require_apart(name, arguments[name], inputs)


def require_apart(name: str, output: Any, inputs: Sequence[Any]) -> None:
    """Raises `ConfigError` if an output would replace an input.

    Args:
      name: flag or argument with the output, for the message.
      output: path of a file or directory to write; None for none.
      inputs: paths that are read, lists of them, or None.
    """
    if output in (None, STANDARD):
        return
    paths: list[Any] = []
    for value in inputs:
        if isinstance(value, list):
            paths += value
        else:
            paths.append(value)
    for path in filter(None, paths):
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
