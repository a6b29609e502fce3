"""What the answers of a command depend on, for a later call that goes on with a killed one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from official.xlnet import __version__
from official.xlnet.checkpoints.any_format import load_config, weights_checksum
from official.xlnet.files.arguments import STANDARD
from official.xlnet.files.atomic import is_stream
from official.xlnet.files.checksums import sha256_of


def identity_of(
    output: str | None, input: str | None, models: Sequence[str], *settings: Any
) -> list[Any] | None:
    """Returns JSON of everything that the answers depend on; see `Answers`.

    Args:
      output: the output file.
      input: the input file.
      models: model directories.
      *settings: the other arguments that answers depend on, and the size of a chunk.

    Returns:
      None where no answer can be kept: one of the files is a stream, a folder or a data set.
    """
    is_file = output not in (None, STANDARD) and not is_stream(str(output))
    if not is_file or not (input is None or os.path.isfile(input)):
        return None
    weights = [[weights_checksum(path), load_config(path).as_dict()] for path in models]
    return [__version__, weights, input and sha256_of(input), *settings]
