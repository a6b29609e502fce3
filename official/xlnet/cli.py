"""Command-line interface: `xlnet VERB --flag=value ...`.

Progress and logs go to standard error, which ends with a line on what was done; the last line of
standard output is a JSON object with the results, with `--output=-` that of standard error.

Exit status: 0 success, 1 internal error (with traceback), 2 invalid input (one-line message); see
`official.xlnet.commands.exit_statuses` for the others, and which of them are worth a restart.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import os
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

from absl import flags
from absl import logging as absl_logging

from official.xlnet import _HAS_GPU, __version__
from official.xlnet.api.verbs import Verb
from official.xlnet.commands.declarations import COMMON, declaration
from official.xlnet.commands.flag_uses import has_other_names, require_one_value
from official.xlnet.configs.registry import REMOVED_VERBS, VERBS
from official.xlnet.errors import did_you_mean
from official.xlnet.files.arguments import STANDARD
from official.xlnet.files.flags_in_messages import called_with_flags
from official.xlnet.files.json_files import json_line, replace_lone_surrogates
from official.xlnet.files.schema import OneOf
from official.xlnet.files.text import printable, printable_line
from official.xlnet.runtime.progress import elapsed_time
from official.xlnet.runtime.start import garbage, lazy_libraries

EXIT_BUG = 1
EXIT_WRONG_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
_STDERR = 2  # Its descriptor.

_MAX_MESSAGE_CHARS = 1000
_LEAST_SIMILAR = 0.75  # Similarity of a word to the verb that is suggested in its place.

_HELP = ("-h", "--help", "-help")
# In the path of a module of others; this package may be installed beside them.
_LIBRARIES = re.compile(r"-packages/(?!official/xlnet/|data_prep/)")


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
    outcome, is_program = _Outcome(), argv is None
    if is_program:  # The process is ours.
        lazy_libraries.install()
        garbage.pause_for_tensorflow()
    with _program(outcome) if is_program else contextlib.nullcontext():
        set_environment_defaults()
        arguments = list(sys.argv[1:] if argv is None else argv)
        outcome.verb, rest = _verb(arguments, outcome)
        if outcome.verb:
            with (
                _errors(outcome),
                called_with_flags(),
                elapsed_time(outcome.verb, silence_seconds=9 if is_program else math.inf),
            ):
                values = _arguments(rest, outcome)
                if values is not None:
                    result = VERBS[outcome.verb].function(**values)
                    _show_result(VERBS[outcome.verb], result, values)
    return outcome.status


@dataclasses.dataclass
class _Outcome:
    """What came of a command.

    Attributes:
      verb: the verb, once it is known; for messages.
      status: the exit status.
    """

    verb: str = ""
    status: int = 0

    @property
    def program(self) -> str:
        """The beginning of its messages."""
        return f"xlnet {self.verb}".rstrip()


def _arguments(arguments: list[str], outcome: _Outcome) -> dict[str, Any] | None:
    """The arguments of the verb's function; None after printing its help."""
    for argument in arguments:  # Rejects characters that no file system accepts.
        if "\0" in argument or replace_lone_surrogates(argument) != argument:
            raise flags.Error(f"expected arguments in UTF-8, got {argument!r}")
    verb = outcome.verb
    if has_other_names(arguments, [*COMMON, *declaration(verb).flags]):
        from official.xlnet.commands.other_names import as_called_today

        verb, arguments = as_called_today(verb, arguments)
        outcome.verb = verb
    if any(argument in _HELP for argument in arguments):
        from official.xlnet.commands.help import verb_help

        print(f"usage: xlnet {verb} [--flag=value ...]\n\n{verb_help(declaration(verb))}")
        return None
    return _values(verb, arguments)


def _show_result(verb: Verb, result: Any, values: Mapping[str, Any]) -> None:
    """Prints what a verb's function has returned: a line for people, and as the last one JSON."""
    from official.xlnet.commands.summary_line import summary_line

    if verb.report is not None:
        result = verb.report(result, values)
    summary = summary_line(result, values, verb.counts)
    if summary:
        _say(printable_line(summary))
    # Standard output holds the answers alone.
    show = _say if values.get("output") == STANDARD else print
    show(json_line(result))


@contextlib.contextmanager
def _program(outcome: _Outcome) -> Iterator[None]:
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
def _errors(outcome: _Outcome) -> Iterator[None]:
    """Prints errors of a verb: a sentence for wrong input, a traceback for a bug."""
    try:
        yield
    except KeyboardInterrupt as error:
        outcome.status = EXIT_INTERRUPTED
        _fail(f"{outcome.program}: {str(error) or 'interrupted'}")
    except Exception as error:
        if isinstance(error, BrokenPipeError):
            print(end="", flush=True)  # Raises it again if standard output is broken.
        from official.xlnet.commands.error_messages import user_message

        message = user_message(error, outcome.verb)
        if message is None:
            _say(printable(traceback.format_exc()))
            outcome.status = EXIT_BUG
        else:
            outcome.status = getattr(error, "exit_status", EXIT_WRONG_INPUT)
            _fail(f"{outcome.program}: {message}")


def _verb(arguments: list[str], outcome: _Outcome) -> tuple[str, list[str]]:
    """The verb and its arguments; an empty verb after printing help or a message."""
    verb, *rest = arguments or _HELP
    if verb == "--version":
        print(__version__)
        return "", []
    known = VERBS.names()
    if verb in (*_HELP, "help") or not any(name.split()[0] == verb for name in known):
        with _errors(outcome):
            # One of them may bring the verb.
            from official.xlnet.commands.extensions import import_extensions

            import_extensions(arguments)
        if outcome.status:
            return "", []
        known = VERBS.names()
    of_group = [name for name in known if name.startswith(f"{verb} ")]
    if verb in (*_HELP, "help") or (of_group and rest and rest[0] in _HELP):
        from official.xlnet.commands.help import usage

        print(usage(of_group or known), end="")
        return "", []
    if of_group:  # A verb of two words.
        verb, rest = " ".join(arguments[:2]), rest[1:]
    if REMOVED_VERBS.is_known(verb):
        outcome.status = _fail(f"xlnet: {verb} was removed: {REMOVED_VERBS[verb]()}")
        return "", []
    if verb not in known:
        expected = sorted(of_group or known)
        hint = did_you_mean(verb, expected, _LEAST_SIMILAR)
        hint = hint or f"; expected one of {', '.join(expected)}"
        outcome.status = _fail(f"xlnet: unknown verb {verb!r}{hint}")
        return "", []
    return verb, rest


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


def _values(verb: str, arguments: list[str]) -> dict[str, Any]:
    """The arguments of a verb's function; imports the extensions that the flags name."""
    declared = declaration(verb)
    parameters = [*COMMON, *declared.flags]
    if has_other_names(arguments, parameters):
        from official.xlnet.commands.other_names import as_settings

        arguments = as_settings(arguments, declared.parameters)
    require_one_value(arguments, parameters)
    table = declared.flag_table(COMMON)
    try:
        rest = table([f"xlnet {verb}", *arguments])[1:]
    except (flags.UnrecognizedFlagError, flags.IllegalFlagValueError) as error:
        from official.xlnet.commands.flag_errors import flag_error

        raise flag_error(error, declared.parameters) from None
    for parameter in COMMON:
        for rule in parameter.rules:
            if isinstance(rule, OneOf):
                rule.check(table[parameter.name].value, parameter.name)
    _set_verbosity(table.verbosity)
    values = declared.values(table, rest)
    for name in table["import"].value:
        from official.xlnet.commands.extensions import import_extension

        import_extension(name)
    return values


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
