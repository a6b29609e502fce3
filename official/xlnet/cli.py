"""Command-line interface: `xlnet VERB --flag=value ...`.

Progress and logs go to standard error; the last line of standard output is a JSON object with the
results.

Exit status: 0 success, 1 internal error (with traceback), 2 invalid input (one-line message),
70 training diverged, 75 preempted by SIGTERM after a checkpoint was saved (run the same command
again to resume), 76 another worker was lost (the same), 130 interrupted, 141 standard output is a
pipe that nobody reads.
"""

from __future__ import annotations

import ast
import difflib
import errno
import importlib
import logging
import os
import pathlib
import re
import sys
import traceback
import types
from typing import Any

from absl import flags
from absl import logging as absl_logging

from official.xlnet import __version__, commands
from official.xlnet.errors import ConfigError, XLNetError
from official.xlnet.files.json_files import mended, print_json
from official.xlnet.files.text import printable, printable_line

EXIT_BUG = 1
EXIT_WRONG_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

_MAX_MESSAGE_CHARS = 1000
_LEAST_SIMILAR = 0.75  # Of a word to the verb that is suggested in its place.

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
_LIBRARIES = re.compile(r"-packages/(apache_beam|tensorflow|tf_keras)/")  # In the path of a module.
_DISK_ERRORS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES),
    *(errno.EIO, errno.ENOENT, errno.ENOTDIR),
)
_EXAMPLE = "\n\nExample:\n"


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
    if argv is not None:
        return _main(argv)
    os.environ["MPLBACKEND"] = "agg"  # A notebook's does not load here; we only write files.
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed.
            # Whatever their encoding can write.
            stream.reconfigure(errors="backslashreplace")
        status = _main(sys.argv[1:])
        print(end="", flush=True)
        return status
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except OSError as error:
        # Otherwise Python would try to flush the buffer at exit, and report the failure.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return EXIT_BROKEN_PIPE
        return _fail(f"xlnet: {error.strerror}: standard output")


def _main(arguments: list[str]) -> int:
    set_environment_defaults()
    verb, *rest = arguments or _HELP
    if verb == "--version":
        print(__version__)
        return 0
    verbs = _verbs()
    group = {known: text for known, text in verbs.items() if known.startswith(f"{verb} ")}
    if verb in (*_HELP, "help") or (group and rest and rest[0] in _HELP):
        print(_USAGE.format(verbs=_listing(group or verbs)), end="")
        return 0
    if group:  # A verb of two words.
        verb, rest = " ".join(arguments[:2]), rest[1:]
    if verb not in verbs:
        known = group or verbs
        nearest = difflib.get_close_matches(verb, known, n=1, cutoff=_LEAST_SIMILAR)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"expected one of {', '.join(known)}"
        return _fail(f"xlnet: unknown verb {verb!r}; {hint}")
    try:
        return _run(verb, rest)
    except KeyboardInterrupt as error:
        return _fail(f"xlnet {verb}: {str(error) or 'interrupted'}", EXIT_INTERRUPTED)
    except Exception as error:
        if isinstance(error, BrokenPipeError):
            print(end="", flush=True)  # Raises it again if standard output is broken.
        message = _user_message(error)
        if message is None:
            print(printable(traceback.format_exc()), file=sys.stderr)
            return EXIT_BUG
        return _fail(f"xlnet {verb}: {message}", getattr(error, "exit_status", EXIT_WRONG_INPUT))


def set_environment_defaults() -> None:
    """Sets default environment variables for TensorFlow; has to run before it is imported.

    tf-models-official requires Keras 2 as `tf.keras`; oneDNN doubles the speed on CPUs where it
    is not enabled by default; the log level hides startup messages about missing accelerators.
    Variables that are already set are not changed.
    """
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if not flags.FLAGS.is_parsed():
        # Each verb has its own FlagValues; absl's global flags keep their defaults.
        flags.FLAGS.mark_as_parsed()
    absl_logging.use_absl_handler()
    absl_logging.get_absl_handler().setFormatter(_Printable())
    absl_logging.set_stderrthreshold("warning")


def _run(verb: str, arguments: list[str]) -> int:
    for argument in arguments:  # What no file and no library takes.
        if "\0" in argument or mended(argument) != argument:
            raise flags.Error(f"expected arguments in UTF-8, got {argument!r}")
    module = load_verb(verb)
    if any(argument in _HELP for argument in arguments):
        print(f"usage: xlnet {verb} [--flag=value ...]\n\n{module.__doc__}")
        listing = module.FLAGS.get_help(include_special_flags=False).strip()
        print("flags:\n" + listing.partition("\n")[2])
        return 0
    module.FLAGS.unparse_flags()
    rest = module.FLAGS([f"xlnet {verb}", *arguments])[1:]
    _check_values(module.FLAGS)
    _set_verbosity(module.FLAGS.verbosity)
    if rest and not getattr(module, "TAKES_ARGUMENTS", False):
        raise flags.Error(f"unexpected argument {rest[0]!r}; flags are written --name=value")
    for name in module.FLAGS["import"].value:
        import_extension(name)
    result = module.run(*rest)
    sys.stderr.flush()
    print_json(result)
    return 0


def _set_verbosity(level: str) -> None:
    """Sets the least severe messages to show; from `info` on, also of libraries."""
    absl_logging.set_verbosity(level)
    absl_logging.set_stderrthreshold(level)
    handler = absl_logging.get_absl_handler().python_handler
    handler.removeFilter(_is_for_users)
    if level in ("info", "debug"):
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"  # Read when TensorFlow is imported.
    else:
        handler.addFilter(_is_for_users)


def _is_for_users(record: logging.LogRecord) -> bool:
    """Whether a message is an error or not from a library, whose warnings no flag answers."""
    return record.levelno >= logging.ERROR or not _LIBRARIES.search(record.pathname)


def load_verb(verb: str) -> types.ModuleType:
    """Imports the module of a verb."""
    return importlib.import_module(f"{commands.__name__}.{verb.replace(' ', '.')}")


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


def _check_values(values: flags.FlagValues) -> None:
    """Checks numbers; puts the home directory in place of `~` in paths.

    Shells leave `~` as it is in `--output=~/runs`.

    Raises:
      flags.Error: a number is NaN, infinite or an integer of more than 64 bits.
    """
    for name, value in values.flag_values_dict().items():
        if isinstance(value, int | float) and not abs(value) < 2**63:
            raise flags.Error(f"--{name}: expected a finite number of at most 64 bits, got {value}")
        if name in commands.PATHS and isinstance(value, list):
            values[name].value = [*map(os.path.expanduser, value)]
        elif name in commands.PATHS and value is not None:
            values[name].value = os.path.expanduser(value)


def _listing(verbs: dict[str, str]) -> str:
    """The verbs by group, each with the first line of its docstring and its example."""
    others = sorted({verb.split()[0] for verb in verbs} - {*sum(_GROUPS.values(), ())})
    lines = []
    for title, words in {**_GROUPS, "Others": others}.items():
        members = [verb for word in words for verb in verbs if verb.split()[0] == word]
        lines += ["", f"{title}:"] if members else []
        for verb in members:
            docstring, _, example = verbs[verb].partition(_EXAMPLE)
            lines.append(f"  {verb:<17} {docstring.splitlines()[0]}")
            lines += [f"      {line}" for line in example.splitlines()]
    return "\n".join(lines)


def _verbs() -> dict[str, str]:
    """{verb: its docstring}, parsed without importing the modules."""
    verbs = {}
    for directory in commands.__path__:
        for path in pathlib.Path(directory).rglob("*.py"):
            if path.stem != "__init__":
                verb = " ".join(path.relative_to(directory).with_suffix("").parts)
                verbs[verb] = ast.get_docstring(ast.parse(path.read_bytes())) or ""
    return dict(sorted(verbs.items()))


def _user_message(error: Exception) -> str | None:
    """Message for invalid input or a disk error; None for an internal error."""
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
    """Formatter of warnings; see `printable`. A message is one line, a traceback may follow."""

    def formatMessage(self, record: Any) -> str:  # noqa: N802
        return printable_line(super().formatMessage(record))

    def format(self, record: Any) -> str:
        return printable(super().format(record))


def _fail(message: str, status: int = EXIT_WRONG_INPUT) -> int:
    """Prints a message as one line, whose middle is left out if it is too long."""
    line, half = " ".join(message.split()), _MAX_MESSAGE_CHARS // 2
    short = line if len(line) <= _MAX_MESSAGE_CHARS else f"{line[:half]} … {line[-half:]}"
    print(printable(short), file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
