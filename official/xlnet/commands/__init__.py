"""Subcommands (verbs) of the `xlnet` command, one module per verb.

To add a verb, add a module `commands/<verb>.py`. The first line of its docstring is shown by
`xlnet --help`, in the group that `official.xlnet.cli` has the verb in, and so is the command that
follows `Example:` at the end. The module defines

* `FLAGS`: the table of its flags, `flag_table(MODEL, string("output", REQUIRED, "Output file."))`;
* `run() -> dict`: runs the command and returns its results, which `official.xlnet.cli` prints as
  JSON on the last line of standard output;
* optionally `TAKES_ARGUMENTS = True`, to accept positional arguments: `run(*arguments)`.

A package `commands/<group>/` holds verbs of two words, such as `xlnet inspect records`.

All verbs also have the flags `--import`: extension modules to import before `run`, and
`--verbosity`.

A flag that several verbs have is defined below, once.

A module is imported only when its verb is run. Import what the flags do not need inside `run`, so
that `xlnet VERB --help` does not load TensorFlow.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags

from data_prep.corpus.text_formats import FORMATS
from official.xlnet.configs.choices import CLUSTER_TIMEOUT, PRODUCTS, STRATEGIES
from official.xlnet.data.reading import MAX_LOST
from official.xlnet.errors import ConfigError

LARGEST_INT = 2**31 - 1
# Flags whose values are paths, in which `~` is the home directory.
PATHS = frozenset(
    ("config", "data", "dev", "extend", "extra_train", "init_from", "input", "model", "model_dir")
    + ("output", "saved_model", "source", "train", "vocab")
)
REQUIRED: Any = object()  # In place of a default: the flag has to be given.

Flag = Callable[..., Any]  # Defines the flag in the table `flag_values`.


def flag_table(*entries: Flag | Sequence[Flag]) -> flags.FlagValues:
    """The flags of a verb, and those that all verbs have.

    Args:
      *entries: flags, and groups of flags that several verbs have.
    """
    table = flags.FlagValues()
    table.set_gnu_getopt(True)  # Flags may follow positional arguments.
    for entry in (_COMMON, *entries):
        for define in [entry] if callable(entry) else entry:
            define(flag_values=table)
    return table


def values_of(table: flags.FlagValues, options: type) -> dict[str, Any]:
    """The values of the flags that are named as the fields of a dataclass of options."""
    names = [field.name for field in dataclasses.fields(options) if field.name in table]
    return {name: table[name].value for name in names}


def _flag(define: Callable[..., Any], name: str, default: Any, text: str, **options: Any) -> Flag:
    """A flag of a kind: its name, its default or `REQUIRED`, and its line of help."""
    options |= {"name": name, "help": text, "required": default is REQUIRED}
    return functools.partial(define, default=None if default is REQUIRED else default, **options)


string = functools.partial(_flag, flags.DEFINE_string)
boolean = functools.partial(_flag, flags.DEFINE_bool)
comma_list = functools.partial(_flag, flags.DEFINE_list)
repeated = functools.partial(_flag, flags.DEFINE_multi_string)


def choice(name: str, default: Any, values: Sequence[str], text: str) -> Flag:
    """A flag that is one of some values."""
    return _flag(flags.DEFINE_enum, name, default, text, enum_values=list(values))


# What all verbs have.
_COMMON = (
    comma_list("import", [], "Extension modules to import before running the command."),
    choice(
        "verbosity",
        default="warning",
        values=["error", "warning", "info", "debug"],
        text="Least severe messages to show; from info on, also messages of TensorFlow.",
    ),
)


def integer(name: str, default: Any, text: str, least: int = 0, most: int = LARGEST_INT) -> Flag:
    """A flag that is an integer, from `least` to `most`."""
    return _flag(flags.DEFINE_integer, name, default, text, lower_bound=least, upper_bound=most)


def number(name: str, default: Any, text: str, least: float, most: float) -> Flag:
    """A flag that is a number, from `least` to `most`."""
    return _flag(flags.DEFINE_float, name, default, text, lower_bound=least, upper_bound=most)


seed = functools.partial(integer, "seed", 0, most=2**32 - 1)
batch_size = functools.partial(integer, "batch_size", 32, least=1, most=65_536)


def config(default: Any = None) -> Flag:
    """The flag `--config`."""
    return string("config", default, "Configuration: YAML file or model directory.")


def max_lost(records: str, unusable: str) -> Flag:
    """The flag `--max_lost`: the share of the input that may be left out."""
    text = (
        f"Largest share of {records} that may be {unusable}: these are left out and counted; more "
        "are an error."
    )
    return number("max_lost", MAX_LOST, text, 0, 1)


def shard_of(shard: str) -> tuple[int, int]:
    """The part and the number of parts of `--shard`.

    Example:
      >>> shard_of("3/16")
      (3, 16)
    """
    if match := re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", shard):
        part, parts = map(int, match.groups())
        if 1 <= part <= parts:
            return part, parts
    raise ConfigError(f"--shard: expected a part of a number of parts, such as 3/16, got {shard}")


MODEL = string("model", REQUIRED, "Model directory.")
SET = repeated("set", [], "Configuration override key=value; may be repeated.")
MAX_LOST_ROWS = max_lost("rows", "unusable")
SHARD = string("shard", None, "Part of the input, 3/16 for the third of sixteen; default: all.")
PRODUCTS_FLAG = choice(
    "products",
    default="float32",
    values=PRODUCTS,
    text="Type of the operands of matrix products: bfloat16 is faster on CPUs that multiply it.",
)
BEAM_OPTIONS = string("beam_options", "", "Command-line options of Beam and its runner.")

# How a corpus is read: `data_prep.settings.ReadOptions`.
CORPUS = (
    comma_list("input", REQUIRED, "Files, glob patterns or tfds:NAME:SPLIT, separated by commas."),
    string(
        "format",
        default="auto",
        text=f"Format of the input files: {', '.join(FORMATS)}; or of --import.",
    ),
    string("text_field", "text", "Field, column or feature that contains the text."),
    choice(
        "on_bad_utf8",
        default="error",
        values=["error", "replace"],
        text="Handling of invalid UTF-8: error, or replace by U+FFFD.",
    ),
    max_lost("records", "unreadable or without text"),
)

# Where a model is trained.
DEVICES = (
    choice("strategy", "one_device", STRATEGIES, "Distribution strategy."),
    integer(
        "cpu_devices",
        default=1,
        text="Number of logical CPU devices, for --strategy=mirrored without GPUs.",
        least=1,
        most=256,
    ),
    number(
        "cluster_timeout",
        default=CLUSTER_TIMEOUT,
        text="Longest wait for the other workers of --strategy=multi_worker, in seconds.",
        least=1,
        most=1_000_000,
    ),
)

# Texts that a pre-trained model scores or continues, and the output.
TEXTS = (
    repeated("text", [], "Input text; may be repeated."),
    string("input", None, "File with one text per line, or a table with a column `text`."),
    string("output", None, "Output file (JSON lines); default: standard output."),
)

# A text that a model is inspected with.
INSPECTED_TEXT = (
    string("text", REQUIRED, "Input text."),
    string("text_pair", None, "Second text, a segment of its own."),
    integer("max_tokens", 128, "Maximum number of tokens; longer texts are truncated.", 1, 4096),
)
