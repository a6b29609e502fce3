"""The directory of a run, before its first step: it is new, or has the run that is resumed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from absl import logging

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.checkpoints.checkpoint_files import latest_checkpoint, recorded_steps
from official.xlnet.checkpoints.model_directory import check_same
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import require_config
from official.xlnet.files.json_files import read_json
from official.xlnet.runtime.run_inputs import INPUTS_FILE
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.tokenization.tokenizer import Tokenizer


def require_no_other_model(directory: str, inputs: Mapping[str, str | None]) -> None:
    """Raises `ConfigError` if a new run would replace the model of another run.

    A run that was killed before its first state was saved may leave a model; a new run with the
    same inputs replaces it.

    Args:
      directory: output directory of the run.
      inputs: checksums of what the run is made from; see `check_inputs`.
    """
    if latest_checkpoint(directory) is None and not recorded_steps(directory):
        return
    record = os.path.join(directory, INPUTS_FILE)
    checksums = {name: value for name, value in inputs.items() if value}
    require_config(
        os.path.exists(record) and read_json(record, dict[str, str]) == checksums,
        directory,
        "a directory without a model, or with the same run",
        "another model, which this run would replace; choose another output directory",
    )


def require_same_run(
    directory: str,
    saved: XLNetConfig,
    config: XLNetConfig,
    vocab: str,
    settings_to_keep: Mapping[str, Iterable[str]],
) -> None:
    """Raises `ConfigError` if the run in a directory cannot be resumed with a configuration.

    Args:
      directory: output directory of the run.
      saved: the configuration of the run.
      config: the configuration of this call.
      vocab: the vocabulary file.
      settings_to_keep: {section: keys} that must have the same values as in the run.
    """
    for section, keys in settings_to_keep.items():
        check_same(saved, config, section, tuple(keys), directory)
    vocab_of_run = os.path.join(directory, VOCAB_FILE)
    require_config(
        Tokenizer(vocab_of_run).sha256 == Tokenizer(vocab).sha256,
        "vocab",
        f"the vocabulary of the run in {directory}",
        "another one",
    )


def warn_of_changes(directory: str, config: XLNetConfig, step: int, last_step: int) -> None:
    """Warns of settings that a finished run does not have, as no step is left for them.

    Args:
      directory: output directory of the run.
      config: the configuration of this call.
      step: the last step of the run.
      last_step: step that this call was to stop at.
    """
    changes = config.changes(load_config(directory))
    if last_step < min(step, config.training.num_steps):
        changes.append(f"steps={last_step} (was {step})")
    if changes:
        logging.warning(
            "%s: its run has ended at step %d, without %s; choose another output directory to "
            "train anew",
            directory,
            step,
            ", ".join(changes),
        )
