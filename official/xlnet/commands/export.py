"""Exports a model as a SavedModel for TF Serving.

Writes --output/<version>/ with the signatures serving_default (raw text), examples (tf.Example)
and token_ids, and example server configurations and requests next to it. --head is task for a
fine-tuned model, and encoder (embeddings) or lm (left-to-right log-likelihoods) for a pre-trained
one.
"""

from __future__ import annotations

from typing import Any

from absl import flags

from official.xlnet.configs.choices import SERVED_HEADS, WEIGHT_STORAGE
from official.xlnet.errors import ConfigError
from official.xlnet.files.staging import on_local_disk

FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_string("model", None, "Model directory.", required=True, flag_values=FLAGS)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Base directory of the model's versions.", required=True, flag_values=FLAGS
)
_VERSION = flags.DEFINE_integer(
    "version",
    None,
    "Version number; default: the latest plus one.",
    lower_bound=1,
    upper_bound=2**63 - 1,
    flag_values=FLAGS,
)
_HEAD = flags.DEFINE_enum(
    "head",
    None,
    SERVED_HEADS,
    "Output of the model; default: task if fine-tuned, else encoder.",
    flag_values=FLAGS,
)
_MAX_LENGTH = flags.DEFINE_integer(
    "max_length",
    None,
    "Maximum sequence length in tokens; default: as in training.",
    lower_bound=1,
    upper_bound=2**31 - 1,
    flag_values=FLAGS,
)
_BUCKETS = flags.DEFINE_list(
    "buckets",
    [],
    "Sequence lengths that inputs are padded to; default: powers of two.",
    flag_values=FLAGS,
)
_WEIGHTS = flags.DEFINE_enum(
    "weights", "float32", WEIGHT_STORAGE, "Storage type of weight matrices.", flag_values=FLAGS
)
_TEXT_COLUMNS = flags.DEFINE_list(
    "text_columns", [], "Names of the text inputs; default: as in training.", flag_values=FLAGS
)
_MAX_CHARACTERS = flags.DEFINE_integer(
    "max_characters",
    200_000,
    "Maximum characters per text; longer texts are rejected.",
    lower_bound=1,
    upper_bound=2**31 - 1,
    flag_values=FLAGS,
)
_MAX_WINDOWS = flags.DEFINE_integer(
    "max_windows",
    512,
    "Maximum windows per text; longer texts are rejected.",
    lower_bound=1,
    upper_bound=2**31 - 1,
    flag_values=FLAGS,
)


@on_local_disk(FLAGS, reads=["model"], writes_directory=["output"])
def run() -> dict[str, Any]:
    """Runs the export; returns what `official.xlnet.serving.export.export` returns."""
    if not all(
        bucket.isascii() and bucket.isdecimal() and len(bucket) < 10 for bucket in _BUCKETS.value
    ):
        raise ConfigError(f"--buckets: expected integers, got {','.join(_BUCKETS.value)}")
    from official.xlnet.serving.export import export

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
