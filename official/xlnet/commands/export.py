"""Exports a model as a SavedModel for TF Serving.

Writes --output/<version>/ with the signatures serving_default (raw text), examples (tf.Example)
and token_ids, and beside it sample configurations and requests. --head is task for a fine-tuned
model, encoder (embeddings) or lm (log-likelihoods from left to right) for a pre-trained one.
"""

from __future__ import annotations

from typing import Any

from absl import flags

from official.xlnet.errors import ConfigError
from official.xlnet.inference.network.stored_weights import STORAGE
from official.xlnet.serving.export import export
from official.xlnet.serving.factory import HEADS

FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_string("model", None, "Model directory.", required=True, flag_values=FLAGS)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Directory of the versions.", required=True, flag_values=FLAGS
)
_VERSION = flags.DEFINE_integer(
    "version", None, "Number of the version; default: one more.", flag_values=FLAGS
)
_HEAD = flags.DEFINE_enum("head", None, HEADS, "What is served.", flag_values=FLAGS)
_MAX_LENGTH = flags.DEFINE_integer(
    "max_length", None, "Longest input in tokens; default: as trained.", flag_values=FLAGS
)
_BUCKETS = flags.DEFINE_list(
    "buckets", [], "Lengths inputs are padded to; default: powers of two.", flag_values=FLAGS
)
_WEIGHTS = flags.DEFINE_enum(
    "weights", "float32", STORAGE, "How matrices are stored.", flag_values=FLAGS
)
_TEXT_COLUMNS = flags.DEFINE_list(
    "text_columns", [], "Names of the text inputs; default: as trained.", flag_values=FLAGS
)
_MAX_CHARACTERS = flags.DEFINE_integer(
    "max_characters", 200_000, "Longest text; a longer one is an error.", 1, flag_values=FLAGS
)
_MAX_WINDOWS = flags.DEFINE_integer(
    "max_windows", 512, "Most windows of one text; more are an error.", 1, flag_values=FLAGS
)


def run() -> dict[str, Any]:
    """Returns `path`, `signatures`, `bytes`, `buckets` and `warmup_requests`."""
    if not all(bucket.isdigit() for bucket in _BUCKETS.value):
        raise ConfigError(f"--buckets: expected numbers, got {','.join(_BUCKETS.value)}")
    return export(
        _MODEL.value,
        _OUTPUT.value,
        _VERSION.value,
        head=_HEAD.value,
        max_length=_MAX_LENGTH.value,
        lengths=[int(bucket) for bucket in _BUCKETS.value],
        weights=_WEIGHTS.value,
        text_columns=_TEXT_COLUMNS.value,
        max_characters=_MAX_CHARACTERS.value,
        max_windows=_MAX_WINDOWS.value,
    )
