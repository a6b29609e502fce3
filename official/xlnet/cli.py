"""Command-line interface: `xlnet VERB --flag=value ...`.

Progress and logs go to standard error; the last line of standard output is a JSON object with the
results, with `--output=-` that of standard error.

Exit status: 0 success, 1 internal error (with traceback), 2 invalid input (one-line message),
70 training diverged, 75 preempted by SIGTERM after a checkpoint was saved (run the same command
again to resume), 76 another worker was lost (the same), 130 interrupted, 141 standard output is a
pipe that nobody reads.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib
import logging
import os
import re
import sys
import traceback
import types
from collections.abc import Iterator, Mapping
from typing import Any

from absl import flags
from absl import logging as absl_logging

from official.xlnet import _HAS_GPU, __version__
from official.xlnet.commands import COMMON, VERBS
from official.xlnet.commands.declarations import Verb
from official.xlnet.commands.early_checks import check_arguments
from official.xlnet.commands.other_names import advice, as_settings
from official.xlnet.errors import ConfigError, XLNetError, did_you_mean
from official.xlnet.files.arguments import STANDARD
from official.xlnet.files.json_files import json_line, mended
from official.xlnet.files.public import called_with_flags
from official.xlnet.files.text import printable, printable_line
from official.xlnet.runtime.progress import waiting

EXIT_BUG = 1
EXIT_WRONG_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
_STDERR = 2  # Its descriptor.

_MAX_MESSAGE_CHARS = 1000
_LEAST_SIMILAR = 0.75  # Similarity of a word to the verb that is suggested in its place.

_HELP = ("-h", "--help", "-help")
_USAGE = """\
usage: xlnet VERB [--flag=value ...]
{verbs}

`xlnet VERB --help` shows the flags of a verb.
"""
# {title in the help: first words of verbs}.
_GROUPS = {
    "Prepare data": ("vocab", "prepare"),
    "Train and evaluate": ("pretrain", "finetune", "evaluate"),
    "Use a model": ("predict", "embed", "score", "generate", "export", "convert"),
    "Look inside": ("inspect",),
}
_REMOVED = {
    "inspect runs": "tensorboard --logdir=DIR shows the curves of runs",
    "inspect steps": "use official.xlnet.projects.pictures.attention_maps.token_steps in Python",
}
# In the path of a module of others; this package may be installed beside them.
_LIBRARIES = re.compile(r"-packages/(?!official/xlnet/|data_prep/)")
_DISK_ERRORS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES),
    *(errno.EIO, errno.ENOENT, errno.ENOTDIR),
)


def main(argv: list[str] | None = None) -> int:
    """Runs the `xlnet` command line.

    Args:
      argv: command-line arguments without the program name; `sys.argv[1:]` by default.

    Returns:
      The exit status; see the module docstring.

    Example:
      >>> main(["--version"])
      1.0.0
      0
    """
    outcome = types.SimpleNamespace(status=0)
    with _program(outcome) if argv is None else contextlib.nullcontext():
        verb, rest, outcome.status = _verb(sys.argv[1:] if argv is None else argv)
        with _errors(verb, outcome), called_with_flags():
            if call := verb and _call(verb, rest):
                result = call()
                # Standard output holds the answers alone.
                is_taken = getattr(call, "keywords", {}).get("output") == STANDARD
                (_say if is_taken else print)(json_line(result))
    return outcome.status


@contextlib.contextmanager
def _program(outcome: types.SimpleNamespace) -> Iterator[None]:
    """Handles interrupts and standard streams that are full, closed or broken, in a program."""
    os.environ["MPLBACKEND"] = "agg"  # A notebook's does not load here; we only write files.
    while (unused := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        pass  # A stream is closed: a file with its number would get what libraries write to it.
    os.close(unused)
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed.
            # Whatever their encoding can write.
            stream.reconfigure(errors="backslashreplace")
        yield
        print(end="", flush=True)
    except KeyboardInterrupt:
        outcome.status = EXIT_INTERRUPTED
    except OSError as error:
        # Otherwise Python would try to flush the buffer at exit, and report the failure.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        outcome.status = EXIT_BROKEN_PIPE
        if not isinstance(error, BrokenPipeError):
            outcome.status = _fail(f"xlnet: {error.strerror}: standard output")


@contextlib.contextmanager
def _errors(verb: str, outcome: types.SimpleNamespace) -> Iterator[None]:
    """Prints errors of a verb: a sentence for wrong input, a traceback for a bug."""
    try:
        yield
    except KeyboardInterrupt as error:
        outcome.status = EXIT_INTERRUPTED
        _fail(f"xlnet {verb}: {str(error) or 'interrupted'}")
    except Exception as error:
        if isinstance(error, BrokenPipeError):
            print(end="", flush=True)  # Raises it again if standard output is broken.
        message = _user_message(error, verb)
        if message is None:
            _say(printable(traceback.format_exc()))
            outcome.status = EXIT_BUG
        else:
            outcome.status = getattr(error, "exit_status", EXIT_WRONG_INPUT)
            _fail(f"xlnet {verb}: {message}")


def _verb(arguments: list[str]) -> tuple[str, list[str], int]:
    """The verb, its arguments and 0; or an empty verb and the status of what was printed."""
    set_environment_defaults()
    verb, *rest = arguments or _HELP
    if verb == "--version":
        print(__version__)
        return "", [], 0
    group = {known: verbs for known, verbs in VERBS.items() if known.startswith(f"{verb} ")}
    if verb in (*_HELP, "help") or (group and rest and rest[0] in _HELP):
        print(_USAGE.format(verbs=_listing(group or VERBS)), end="")
        return "", [], 0
    if group:  # A verb of two words.
        verb, rest = " ".join(arguments[:2]), rest[1:]
    if verb in _REMOVED:
        return "", [], _fail(f"xlnet: {verb} was removed: {_REMOVED[verb]}")
    if verb not in VERBS:
        known = group or VERBS
        hint = did_you_mean(verb, known, _LEAST_SIMILAR) or f"; expected one of {', '.join(known)}"
        return "", [], _fail(f"xlnet: unknown verb {verb!r}{hint}")
    return verb, rest, 0


def set_environment_defaults() -> None:
    """Sets default environment variables for TensorFlow; has to run before it is imported.

    oneDNN doubles the speed on CPUs where it is not enabled by default. The package itself hides
    TensorFlow's log lines. Variables that are already set are not changed.
    """
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    if not flags.FLAGS.is_parsed():
        # Each verb has its own FlagValues; absl's global flags keep their defaults.
        flags.FLAGS.mark_as_parsed()
    absl_logging.use_absl_handler()
    absl_logging.get_absl_handler().setFormatter(_Printable())
    absl_logging.set_stderrthreshold("warning")


def _call(verb: str, arguments: list[str]) -> functools.partial | None:
    """The call of a verb's function with its arguments; None after printing its help."""
    for argument in arguments:  # Rejects characters that no file system accepts.
        if "\0" in argument or mended(argument) != argument:
            raise flags.Error(f"expected arguments in UTF-8, got {argument!r}")
    declared = VERBS[verb]
    table = declared.flag_table(COMMON)
    if any(argument in _HELP for argument in arguments):
        print(f"usage: xlnet {verb} [--flag=value ...]\n\n{declared.help(COMMON)}")
        return None
    renamed = {f"--{old}": f"--{new}" for old, new in declared.former_names.items()}
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in renamed:
            absl_logging.warning("%s is now called %s", name, renamed[name])
            arguments[place] = renamed[name] + equals + value
    rest = _parsed(table, verb, as_settings(arguments, declared.parameters))
    for parameter in COMMON:
        parameter.checked(table[parameter.name].value)
    _set_verbosity(table.verbosity)
    if rest and not declared.positional:
        raise flags.Error(f"unexpected argument {rest[0]!r}; flags are written --name=value")
    values = declared.values(table, rest)
    for name in table["import"].value:
        import_extension(name)
    check_arguments(verb, declared.parameters, values)
    with waiting("loading TensorFlow"):
        function = declared.load()
    return functools.partial(function, **values)


def _parsed(table: flags.FlagValues, verb: str, arguments: list[str]) -> list[str]:
    """Parses the flags among arguments; returns the others.

    Raises:
      ConfigError: the value of a flag is of another type.
      flags.Error: a flag is unknown, or one that is required is missing.
    """
    parameters = VERBS[verb].parameters
    try:
        return table([f"xlnet {verb}", *arguments])[1:]
    except flags.UnrecognizedFlagError as error:
        name, value = error.flagname, error.flagvalue.partition("=")[2]
        raise flags.Error(f"unknown flag --{name}{advice(name, value, parameters)}") from None
    except flags.IllegalFlagValueError as error:
        found = re.match(r"flag --(\w+)=(.*?): (?:invalid|could|Non)", str(error), re.DOTALL)
        if found is None or found[1] not in parameters:
            raise
        expected = {bool: "true or false", int: "an integer"}.get(parameters[found[1]].kind)
        message = f"{found[1]}: expected {expected or 'a number'}, got {found[2]!r}"
        raise ConfigError(message) from None


def _set_verbosity(level: str) -> None:
    """Sets the least severe messages to show; from `info` on, also of libraries."""
    absl_logging.set_verbosity(level)
    absl_logging.set_stderrthreshold(level)
    handler = absl_logging.get_absl_handler().python_handler
    handler.removeFilter(_is_for_users)
    if level in ("info", "debug"):
        # Read when TensorFlow is imported.
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0" if _HAS_GPU else "3"
    else:
        handler.addFilter(_is_for_users)


def _is_for_users(record: logging.LogRecord) -> bool:
    """Whether a message is an error, or not from a library, whose warnings no flag answers."""
    return record.levelno >= logging.ERROR or not _LIBRARIES.search(record.pathname)


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


def _listing(verbs: Mapping[str, Verb]) -> str:
    """The verbs by group, each with the first line of its docstring and its example."""
    others = sorted({verb.split()[0] for verb in verbs} - {*sum(_GROUPS.values(), ())})
    lines = []
    for title, words in {**_GROUPS, "Others": others}.items():
        members = [verb for word in words for verb in verbs if verb.split()[0] == word]
        lines += ["", f"{title}:"] if members else []
        for verb in members:
            lines.append(f"  {verb:<17} {verbs[verb].sections[''].splitlines()[0]}")
            lines += [f"      {line}" for line in verbs[verb].example.splitlines()]
    return "\n".join(lines)


def _user_message(error: Exception, verb: str) -> str | None:
    """Message for invalid input or a disk error, with flags and URLs; None for a bug."""
    from official.xlnet.files.urls import with_urls

    message = _message(error)
    if message is None or getattr(error, "names_local_paths", False):
        return message
    name = re.match(r"\w+(?![.\w])", message)
    known = {*VERBS[verb].parameters, *(parameter.name for parameter in COMMON)}
    is_flag = isinstance(error, XLNetError) and name and name[0] in known
    return with_urls(f"--{message}" if is_flag else message)


def _message(error: Exception) -> str | None:
    if isinstance(error, flags.Error):
        missing = re.match(r"flag --\w+=None: Flag (--\w+) must have a value", str(error))
        return f"{missing[1]} is required" if missing else str(error)
    if isinstance(error, OSError):
        # Copying names both files, and fails at the second one.
        name = error.filename2 or error.filename
        where = f": {name!r}" if name else ""
        if "No usable temporary directory" in str(error):
            where = "; set TMPDIR to a directory that can be written to"
        return f"{error.strerror or error}{where}"
    if isinstance(error, XLNetError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"out of memory; use a smaller model, batch or input {error}"
    is_of_tensorflow = type(error).__module__.startswith("tensorflow.")
    return _tensorflow_message(error) if is_of_tensorflow else None


def _tensorflow_message(error: Any) -> str | None:
    """Message for a disk or memory error of TensorFlow; None for any other of its errors.

    TensorFlow reports errors of the operating system by their message only, behind the file.
    """
    text = re.sub(r"{{.*?}}", "", getattr(error, "message", str(error)))
    for reason in map(os.strerror, _DISK_ERRORS):
        if match := re.search(rf"(.*?);? ?{re.escape(reason)}", text, re.IGNORECASE):
            name = match[1].strip()
            return f"{reason}: {name!r}" if name else reason
    if type(error).__name__ == "ResourceExhaustedError":
        shape = re.search(r"shape ?\[[\d, ]*\]", text)
        what = f" for an array of {shape[0]}" if shape else ""
        return f"out of memory{what}; use a smaller model, batch or input"
    return None


class _Printable(absl_logging.PythonFormatter):
    """Formatter of warnings; see `printable`. A message is one line, a traceback may follow.

    Only those of libraries begin with their time and place.
    """

    def formatMessage(self, record: Any) -> str:  # noqa: N802
        return printable_line(super().formatMessage(record))

    def format(self, record: Any) -> str:
        is_ours = not _LIBRARIES.search(record.pathname)
        kind = logging.Formatter if is_ours else absl_logging.PythonFormatter
        return printable(kind.format(self, record))


def _fail(message: str) -> int:
    """Prints a message as one line, whose middle is left out if it is too long."""
    line, half = " ".join(message.split()), _MAX_MESSAGE_CHARS // 2
    short = line if len(line) <= _MAX_MESSAGE_CHARS else f"{line[:half]} … {line[-half:]}"
    _say(printable(short))
    return EXIT_WRONG_INPUT


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # The disk of the log is full.
        if sys.stderr:  # It is closed otherwise, and `print` would take standard output.
            print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
