"""The record of a run's inputs: `inputs.json` in its output directory, with their checksums.

A run is only resumed with the same inputs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from official.xlnet.errors import require_config, require_data
from official.xlnet.files.checksums import ALL_BYTES
from official.xlnet.files.json_files import read_json, write_json

INPUTS_FILE = "inputs.json"


def check_inputs(
    directory: str, inputs: Mapping[str, str | None], is_begun: bool, writes: bool = True
) -> None:
    """Records the inputs of a new run, or compares the inputs of a resumed run with its record.

    Args:
      directory: output directory of the run.
      inputs: {role of an input, e.g. `training data`: its checksum, or None if this call does not
        name it}.
      is_begun: whether the directory has a run, which is finished or will be resumed.
      writes: whether this process writes the record.

    Raises:
      ConfigError: an input differs from the one that the run was started with.
      DataError: the directory has a model that was not written by a run.
    """
    path = os.path.join(directory, INPUTS_FILE)
    if not is_begun:
        if writes:
            os.makedirs(directory, exist_ok=True)
            write_json(path, {name: checksum for name, checksum in inputs.items() if checksum})
        return
    is_run = os.path.exists(path)
    require_data(is_run, directory, "a run to go on with", f"a model without {INPUTS_FILE}")
    saved = read_json(path, dict[str, str])
    for name, checksum in inputs.items():
        if checksum is None or checksum == saved.get(name):
            continue
        is_older_kind = checksum.startswith(ALL_BYTES) and ":" not in saved.get(name, ":")
        got = "other ones" if name in saved else f"a run that had no {name}"
        require_config(
            is_older_kind,
            directory,
            f"the {name} that its run was made from",
            f"{got}; choose another output directory, or remove this one to train anew",
        )
