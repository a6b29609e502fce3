"""What a user means who types another name: keys of the configuration, former verbs, typos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from absl import flags
from absl import logging as absl_logging

from official.xlnet.commands.declarations import Parameter, declaration
from official.xlnet.errors import did_you_mean
from official.xlnet.files.former_options import FORMER_OPTIONS, selects_nothing, takes

# Flags of Hugging Face's scripts and of others: our flags, or keys of the configuration.
SYNONYMS: dict[str, tuple[str, ...]] = {
    "batch_size": ("training.batch_size",),
    "bf16": ("training.precision=mixed_bfloat16",),
    "config_name": ("config",),
    "data": ("train", "input"),
    "dataset_name": ("train", "data", "input"),
    "dev_file": ("dev",),
    "eval_file": ("dev", "data"),
    "eval_steps": ("training.checkpoint_steps",),
    "fp16": ("training.precision=mixed_float16",),
    "gradient_accumulation_steps": ("training.accumulate_steps",),
    "input_file": ("input",),
    "label_column_name": ("task.label_column",),
    "length": ("num_tokens",),
    "lr": ("training.learning_rate",),
    "lr_scheduler_type": ("training.schedule",),
    "max_grad_norm": ("training.clip_norm",),
    "max_length": ("num_tokens",),
    "max_new_tokens": ("num_tokens",),
    "max_seq_length": ("max_length", "task.max_length"),
    "max_steps": ("steps", "training.num_steps"),
    "model_name_or_path": ("init_from", "model", "source"),
    "num_epochs": ("task.epochs",),
    "num_train_epochs": ("task.epochs",),
    "optim": ("training.optimizer",),
    "output_dir": ("output",),
    "output_file": ("output",),
    "per_device_eval_batch_size": ("batch_size",),
    "per_device_train_batch_size": ("training.batch_size",),
    "prompt": ("text",),
    "save_steps": ("training.checkpoint_steps",),
    "seq_length": ("max_length", "data.seq_len"),
    "steps": ("training.num_steps",),
    "task_name": ("task",),
    "test_file": ("input", "data"),
    "text": ("input=FILE",),
    "text_column_name": ("text_field", "task.text_columns"),
    "tokenizer_name": ("vocab",),
    "train_file": ("train", "data", "input"),
    "validation_file": ("dev", "heldout_input", "data"),
}


class FlagUse(NamedTuple):
    """A flag among arguments.

    Attributes:
      place: index of the argument.
      num_words: 1, or 2 for `--name value`.
      value: its value, as text.
    """

    place: int
    num_words: int
    value: str


def uses_of(name: str, arguments: Sequence[str], is_switch: bool) -> list[FlagUse]:
    """Returns where a flag is given, and with which values.

    Args:
      name: its name.
      arguments: the arguments of a verb.
      is_switch: whether it is true or false, and is written without a value.

    Example:
      >>> uses_of("runs", ["--task=sst2", "--runs", "3"], is_switch=False)
      [FlagUse(place=1, num_words=2, value='3')]
    """
    uses = []
    for place, argument in enumerate(arguments):
        if not argument.startswith("-"):
            continue
        flag, equals, value = argument.lstrip("-").partition("=")
        if is_switch and flag == f"no{name}":
            uses.append(FlagUse(place, 1, "false"))
        elif flag == name and equals:
            uses.append(FlagUse(place, 1, value))
        elif flag == name and is_switch:
            uses.append(FlagUse(place, 1, "true"))
        elif flag == name:
            uses.append(FlagUse(place, 2, "".join(arguments[place + 1 : place + 2])))
    return uses


def as_called_today(verb: str, arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Returns a command in a former spelling as it is written today, and logs what has changed.

    Args:
      verb: the verb.
      arguments: its arguments.

    Example:
      >>> as_called_today("score", ["--words", "--unit=bits"])
      ('words', ['--unit=bits'])
    """
    today, rest = verb, list(arguments)
    typed = {argument.lstrip("-").partition("=")[0] for argument in arguments}
    for spelling in FORMER_OPTIONS.names():
        former_verb, _, option = spelling.rpartition(".")
        if former_verb != verb or not typed & {option, f"no{option}"}:
            continue
        other = FORMER_OPTIONS[spelling]
        is_switch = isinstance(other.former[spelling], bool)
        for use in reversed(uses_of(option, rest, is_switch)):  # From the end, as some go.
            has_effect = not selects_nothing(spelling, use.value)
            if has_effect and today == verb:
                today = other.name
                absl_logging.warning("%s --%s is now: xlnet %s", verb, option, today)
            is_understood = has_effect and (today != other.name or takes(other.function, option))
            if not is_understood:
                del rest[use.place : use.place + use.num_words]
    return today, _with_present_names(today, rest)


def _with_present_names(verb: str, arguments: Sequence[str]) -> list[str]:
    """Returns arguments with the flags' names of today, and logs which have changed."""
    present_names = declaration(verb).former_names
    renamed = []
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        present = present_names.get(flag.removeprefix("--"))
        if present is not None and flag.startswith("--"):
            absl_logging.warning("%s is now called --%s", flag, present)
            argument = f"--{present}{equals}{value}"
        renamed.append(argument)
    return renamed


def require_one_value(arguments: Sequence[str], parameters: Sequence[Parameter]) -> None:
    """Raises `flags.Error` if a flag that holds one value is given twice, with different ones.

    Args:
      arguments: the arguments of a verb.
      parameters: its flags.
    """
    for parameter in parameters:
        if parameter.container is not None:
            continue
        uses = uses_of(parameter.name, arguments, is_switch=parameter.value_type is bool)
        values = list(dict.fromkeys(use.value for use in uses))
        if len(values) > 1:
            got = " and ".join(map(repr, values))
            raise flags.Error(f"--{parameter.name}: expected one value, got {got}")


def as_settings(arguments: Sequence[str], parameters: Mapping[str, Parameter]) -> list[str]:
    """Returns arguments in which keys of the configuration, typed as flags, are settings.

    Args:
      arguments: the arguments of a verb.
      parameters: its parameters, by name.

    Example:
      >>> as_settings(["--epochs=3", "--task=sst2"], declaration("finetune").parameters)
      ['--set=task.epochs=3', '--task=sst2']
    """
    if "set" not in parameters:
        return list(arguments)
    settings: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, equals, value = argument.removeprefix("--").partition("=")
        key = _key(name) if argument.startswith("--") and name not in parameters else ""
        if key and not equals and rest and not rest[0].startswith("-"):
            equals, value = "=", rest.pop(0)
        settings.append(f"--set={key}={value}" if key and equals else argument)
    return settings


def advice(flag: str, value: str, parameters: Mapping[str, Parameter]) -> str:
    """Returns the end of a message about an unknown flag: what to type.

    Args:
      flag: its name.
      value: its value; empty if unknown.
      parameters: the parameters of the verb, by name.

    Example:
      >>> advice("num_train_epochs", "3", declaration("finetune").parameters)
      '; did you mean --set=task.epochs=3?'
    """
    takes_keys = "set" in parameters
    for name in (*SYNONYMS.get(flag, ()), *filter(None, [_key(flag)])):
        whole = name if "=" in name else f"{name}={value or 'VALUE'}"
        is_flag = name.partition("=")[0] in parameters
        if is_flag or (takes_keys and "." in name):
            return f"; did you mean --{'set=' * (not is_flag)}{whole}?"
    known = {name: f"--{name}" for name in parameters}
    if takes_keys:
        from official.xlnet.configs.experiment import XLNetConfig

        config = XLNetConfig()
        for section in config.__dataclass_fields__:
            for key in getattr(config, section).known_keys():
                full_key = f"{section}.{key}"
                known.setdefault(full_key if "." in flag else key, f"--set={full_key}")
    if key := _key(flag):
        return f"; {key} is a key of the configuration, which this command takes from the model"
    return did_you_mean(flag, known, full=known) or "; --help shows the flags of this command"


def _key(name: str) -> str:
    """The key of the configuration, `section.key`, that a name stands for; empty for none."""
    from official.xlnet.configs.experiment import XLNetConfig  # Few commands need it here.

    section, _, key = name.rpartition(".")
    owners = [owner for owner in XLNetConfig().sections_of(key) if section in ("", owner)]
    return f"{owners[0]}.{key}" if len(owners) == 1 else ""
