"""Record of the inputs of a run, so that the same command is resumed on the same inputs only.

`inputs.json` of an output directory has a checksum of the content of each input. A run that is
finished or resumed is compared with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from absl import logging

from official.xlnet.errors import ConfigError
from official.xlnet.files.json_files import read_json, write_json

INPUTS_FILE = "inputs.json"


def check_inputs(
    directory: str, inputs: Mapping[str, str | None], is_begun: bool, writes: bool = True
) -> None:
    """Compares the inputs of a run that has begun with its record, or records those of a new one.

    Args:
      directory: output directory of the run.
      inputs: checksum of each input by what it is, e.g. `training data`; None if this call does
        not name it.
      is_begun: whether the directory holds a run that is finished or to be resumed.
      writes: whether this process writes the record.

    Raises:
      ConfigError: an input is not the one that the run was made from.
    """
    path = os.path.join(directory, INPUTS_FILE)
    if not is_begun:
        if writes:
            os.makedirs(directory, exist_ok=True)
            write_json(path, {name: value for name, value in inputs.items() if value})
    elif not os.path.exists(path):
        logging.warning("%s: an earlier version made it without %s", directory, INPUTS_FILE)
    else:
        saved = read_json(path, dict[str, str])
        for name, value in inputs.items():
            if value is not None and value != saved.get(name):
                raise ConfigError(
                    f"{directory}: expected the {name} that its run was made from, got "
                    f"{'other ones' if name in saved else f'a run that had no {name}'}; choose "
                    "another output directory, or remove this one to train anew"
                )
