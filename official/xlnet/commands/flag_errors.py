"""What is wrong with a flag, and what to type instead; imported after an error."""

from __future__ import annotations

import re
from collections.abc import Mapping

from absl import flags

from official.xlnet.commands.declarations import Parameter
from official.xlnet.commands.other_names import key_of
from official.xlnet.errors import ConfigError, did_you_mean

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


def flag_error(error: flags.Error, parameters: Mapping[str, Parameter]) -> Exception:
    """Returns the error to raise in place of one of absl.

    Args:
      error: an error of parsing flags.
      parameters: the parameters of the verb, by name.
    """
    if isinstance(error, flags.UnrecognizedFlagError):
        name, value = error.flagname, error.flagvalue.partition("=")[2]
        return flags.Error(f"unknown flag --{name}{_advice(name, value, parameters)}")
    match = re.match(r"flag --(\w+)=(.*?): (?!Flag )", str(error), re.DOTALL)
    if match is None or match[1] not in parameters:
        return error
    expected = {bool: "true or false", int: "an integer", float: "a number"}
    value_type = parameters[match[1]].value_type
    return ConfigError(f"{match[1]}: expected {expected[value_type]}, got {match[2]!r}")


def _advice(flag: str, value: str, parameters: Mapping[str, Parameter]) -> str:
    """Returns the end of a message about an unknown flag: what to type.

    Args:
      flag: its name.
      value: its value; empty if unknown.
      parameters: the parameters of the verb, by name.

    Example:
      >>> _advice("num_train_epochs", "3", declaration("finetune").parameters)
      '; did you mean --set=task.epochs=3?'
    """
    takes_keys = "set" in parameters
    for name in (*SYNONYMS.get(flag, ()), *filter(None, [key_of(flag)])):
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
    if key := key_of(flag):
        return f"; {key} is a key of the configuration, which this command takes from the model"
    return did_you_mean(flag, known, full=known) or "; --help shows the flags of this command"
