"""Identity of a call: everything its answers depend on, so that a killed call can be resumed."""

from __future__ import annotations

import os
from typing import Any

from official.xlnet import __version__
from official.xlnet.checkpoints.any_format import load_config, weights_checksum
from official.xlnet.files.arguments import STANDARD
from official.xlnet.files.atomic import is_stream
from official.xlnet.files.checksums import sha256_of


def identity_of(call: Any, chunk_size: int) -> dict[str, Any] | None:
    """Returns JSON of everything that the answers of a call depend on; see `Answers`.

    That is every argument, with what is in the models and in the input file in the place of their
    paths, and without the output. How a file is read depends on its name and its folder's, too.

    Args:
      call: a dataclass of all arguments of a verb, from which its job reads them; among them
        `model`, one or several, `input` and `output`.
      chunk_size: number of rows that are answered together.

    Returns:
      None where no answer can be kept: one of the files is a stream, a folder or a data set.
    """
    arguments = dict(vars(call))
    output, source, model = (arguments.pop(name) for name in ("output", "input", "model"))
    is_file = output not in (None, STANDARD) and not is_stream(str(output))
    if not is_file or not (source is None or os.path.isfile(source)):
        return None
    models = [model] if isinstance(model, str) else model
    content, names = None, None
    if source is not None:
        content = sha256_of(source)
        names = os.path.abspath(source).split(os.sep)[-2:]
    return {
        "version": __version__,
        "call": type(call).__name__,
        "models": [[weights_checksum(path), load_config(path).as_dict()] for path in models],
        "input": content,
        "input_names": names,
        "chunk_size": chunk_size,
        **arguments,
    }
