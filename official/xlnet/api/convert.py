"""`convert`: a model in another format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from official.xlnet.api.arguments import Model, Override
from official.xlnet.api.verbs import USE, register_verb
from official.xlnet.configs.choices import CHECKPOINT_FORMS
from official.xlnet.files.arguments import OutputDirectory
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf
from official.xlnet.runtime.progress import loading_tensorflow


@register_verb("convert", group=USE, counts={"variables": "variables", "parameters": "parameters"})
@public(overrides="set", model="source")
def convert(
    source: Model,
    output: OutputDirectory,
    to: Annotated[str, OneOf(CHECKPOINT_FORMS)] = "xlnet",
    set: Sequence[Override] = (),
) -> dict[str, Any]:
    """Converts a model between our format, Hugging Face (HF) and the TF1 release.

    The format of the source is detected from its files: xlnet_config.json (TF1 release),
    config.json (HF) or config.yaml (our model directory).

    Args:
      source: directory of the model to convert.
      output: output directory; must not exist or be empty.
      to: output format.
      set: configuration override `key=value`, as in `XLNetConfig.load`; may be repeated.

    Returns:
      A dictionary with:
        variables: number of converted variables.
        parameters: number of converted parameters.
        left_over: names of source variables that were not converted.
        not_filled: our names of the variables missing from the source.
        differences: a sentence for each setting that the output format does not have and with
          which it computes something else; also in `README.md` of the output.

    Raises:
      DataError: the format of the source is not recognized, it is damaged, incomplete or
        inconsistent, or the output already exists.
      ConfigError: the output format cannot represent the configuration.

    Example:
      $ xlnet convert --source=runs/model --output=runs/hf --to=hf

      >>> convert("xlnet-base-cased", "runs/base")["not_filled"]
      []
    """
    from official.xlnet.checkpoints.any_format import load_config

    load_config(source, set)  # Its errors need no TensorFlow.
    with loading_tensorflow():
        from official.xlnet.checkpoints.convert import convert_model
    return convert_model(source, output, to, set)
