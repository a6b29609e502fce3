"""What to type in the place of an unknown flag: keys of the configuration, names of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from official.xlnet.commands.declarations import Parameter
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import did_you_mean

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


def as_settings(arguments: Sequence[str], parameters: Mapping[str, Parameter]) -> list[str]:
    """Returns arguments in which keys of the configuration, typed as flags, are settings.

    Args:
      arguments: the arguments of a verb.
      parameters: its parameters, by name.

    Example:
      >>> as_settings(["--epochs=3", "--task=sst2"], VERBS["finetune"].parameters)
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
      >>> advice("num_train_epochs", "3", VERBS["finetune"].parameters)
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
        config = XLNetConfig()
        for section in config.__dataclass_fields__:
            keys = getattr(config, section).known_keys()
            known |= {key: f"--set={section}.{key}" for key in keys if key not in known}
    if key := _key(flag):
        return f"; {key} is a key of the configuration, which this command takes from the model"
    return did_you_mean(flag, known, full=known) or "; --help shows the flags of this command"


def _key(name: str) -> str:
    """The key of the configuration, `section.key`, that a name stands for; empty for none."""
    section, _, key = name.rpartition(".")
    owners = [owner for owner in XLNetConfig().sections_of(key) if section in ("", owner)]
    return f"{owners[0]}.{key}" if len(owners) == 1 else ""
