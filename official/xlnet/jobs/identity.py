"""Identity of a call: all its arguments, so that a killed call is resumed by the same call only."""

from __future__ import annotations

import os
from typing import Any

from official.xlnet import __version__
from official.xlnet.checkpoints.any_format import load_config, weights_checksum
from official.xlnet.files.arguments import STANDARD
from official.xlnet.files.atomic import is_stream
from official.xlnet.files.call_arguments import running_call
from official.xlnet.files.checksums import sha256_of
from official.xlnet.tokenization.special_tokens import (
    ADDED_JSON,
    SETTINGS,
    TOKENIZER_JSON,
    VOCAB_FILE,
)

_VOCABULARY = (VOCAB_FILE, TOKENIZER_JSON, SETTINGS, ADDED_JSON)
_ROWS = "input"  # Answers are kept with the rows as they were read, see `Answers`.


def identity_of_call() -> dict[str, Any] | None:
    """Returns JSON of all that answers depend on besides their rows; see `Answers`.

    That is every argument of the public function that is running, whichever there are, with the
    content of models and files in place of their paths; without `input` and outputs.

    Returns:
      None where no answer can be kept: the output is a stream, or no public function is running.
    """
    call = running_call()
    if call is None:
        return None
    identity: dict[str, Any] = {"version": __version__, "function": call.name}
    for name, value in call.arguments.items():
        use = call.uses.get(name, "")
        if use.startswith("write"):
            if value == STANDARD or is_stream(value):
                return None
        elif name == "output":  # None: standard output.
            return None
        elif use == "read" and name != _ROWS:
            paths = [value] if isinstance(value, str) else value
            identity[name] = [_content(path) for path in paths]
        elif name != _ROWS:
            identity[name] = value
    return identity


def _content(path: str) -> Any:
    """JSON of the content of a file, or of a model: configuration, weights and vocabulary."""
    if os.path.isfile(path):
        return sha256_of(path)
    vocabulary = [sha256_of(os.path.join(path, name)) for name in _VOCABULARY]
    return [weights_checksum(path), load_config(path).as_dict(), vocabulary]
