"""`export`: a SavedModel for TF Serving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from official.xlnet.api.arguments import Model
from official.xlnet.api.verbs import USE, register_verb
from official.xlnet.configs.choices import (
    MAX_CHARACTERS,
    MAX_WINDOWS,
    PRODUCTS,
    SERVED_HEADS,
    WEIGHT_STORAGE,
)
from official.xlnet.files.arguments import COMMAS, OutputDirectory
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf, Range
from official.xlnet.runtime.progress import loading_tensorflow


@register_verb("export", group=USE, counts={"bytes": "bytes"})
@public(model_dir="model", lengths="buckets")
def export(
    model: Model,
    output: OutputDirectory,
    version: Annotated[int, Range(1)] | None = None,
    head: Annotated[str, OneOf(SERVED_HEADS)] | None = None,
    buckets: Annotated[Sequence[int], COMMAS] = (),
    max_length: Annotated[int, Range(1)] | None = None,
    weights: Annotated[str, OneOf(WEIGHT_STORAGE)] = "float32",
    text_columns: Annotated[Sequence[str], COMMAS] = (),
    max_characters: Annotated[int, Range(1)] = MAX_CHARACTERS,
    max_windows: Annotated[int, Range(1)] = MAX_WINDOWS,
    products: Annotated[str, OneOf(PRODUCTS)] | None = None,
) -> dict[str, Any]:
    """Exports a model as a SavedModel for TF Serving.

    Writes output/<version>/ with the signatures serving_default (raw text), examples (tf.Example)
    and token_ids, and example server configurations and requests next to it.

    Args:
      model: model directory to export.
      output: base path of the model on TF Serving; created if missing.
      version: version number; default: one more than the latest. The same export again leaves it
        as it is.
      head: output of the model: `task` for a fine-tuned model, and `encoder` (embeddings) or `lm`
        (left-to-right log-likelihoods) for a pre-trained one; default: task if fine-tuned, else
        encoder.
      buckets: lengths that inputs are padded to, in tokens, ascending; default: powers of two.
      max_length: maximum input length in tokens; default: as in training, see `create_service`.
      weights: storage type of weight matrices.
      text_columns: names of the text inputs; default: as in training.
      max_characters: maximum length of a text in code points; longer texts are rejected.
      max_windows: maximum number of windows of a text; longer texts are rejected.
      products: type of the operands of matrix products, see `matmul_precision`; default: float32.

    Returns:
      A dictionary with
        path: directory of the version.
        signatures: {name: {"inputs": [...], "outputs": [...]}}.
        columns: {text input: column of the training data}; in `COLUMNS_FILE` of the version, too.
        bytes: size of the version.
        buckets: lengths that inputs are padded to, in tokens.
        warmup_requests: number of warmup requests.

    Raises:
      ConfigError: the settings do not fit the model; see `create_service`.
      DataError: the version number is invalid or exists, the model cannot be read, or its outputs
        for an example are NaN or infinite.

    Example:
      $ xlnet export --model=runs/sst2 --output=exported/sst2

      >>> export("runs/sst2", "exported/sst2")["path"]
      'exported/sst2/1'
    """
    with loading_tensorflow():
        from official.xlnet.serving.export import export_model
    return export_model(
        model,
        output,
        version,
        head=head,
        buckets=buckets,
        max_length=max_length,
        weights=weights,
        text_columns=text_columns,
        max_characters=max_characters,
        max_windows=max_windows,
        products=products,
    )
