"""`embed`: vectors of the texts of a file, to a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from official.xlnet.api.arguments import Model
from official.xlnet.api.verbs import USE, register_verb
from official.xlnet.configs.choices import POOLINGS, PRODUCTS
from official.xlnet.configs.registry import TEXT_ROW_FORMATS
from official.xlnet.errors import ConfigError
from official.xlnet.files.arguments import COMMAS, STANDARD, OutputFile, Path
from official.xlnet.files.public import public
from official.xlnet.files.registry import NameIn
from official.xlnet.files.schema import OneOf, Range
from official.xlnet.runtime.progress import loading_tensorflow


@register_verb("embed", group=USE)
@public()
def embed_file(
    model: Model,
    input: Path,
    output: OutputFile,
    pooling: Annotated[str, OneOf(POOLINGS)] = "mean",
    layer: Annotated[int, Range(-1001, 1000)] = -1,
    layers: Annotated[Sequence[int], COMMAS] = (),
    max_length: Annotated[int, Range(1)] | None = None,
    window_stride: Annotated[int, Range(0)] = 0,
    batch_size: Annotated[int, Range(1, 65_536)] = 32,
    products: Annotated[str, OneOf(PRODUCTS)] | None = None,
    format: Annotated[str, NameIn(TEXT_ROW_FORMATS)] | None = None,
) -> dict[str, Any]:
    """Embeds texts: one vector per text, as .npy, JSON lines or Parquet.

    Row n of the output is the vector of text n; an empty line is an empty text. With the pooling
    none or words, a row is one of a token or word, with the number of its text and its place. The
    other columns of a table come back, except in .npy. Running the same command again resumes one
    that was killed.

    Args:
      model: model directory, HF folder or TF1 release.
      input: UTF-8 file with one text per line, or a table with a column `text`; - for standard
        input.
      output: file ending in .npy, .jsonl or .parquet, which is its format; - for JSON lines on
        standard output.
      pooling: `mean` over all tokens, or `text_mean` without SEP and CLS; `cls`; or a row for each
        word (`words`) or token (`none`).
      layer: layer: 0 is the word embedding; negative numbers count from the last.
      layers: several layers, whose vectors are concatenated, separated by commas.
      max_length: maximum length in tokens; default: data.seq_len of the model.
      window_stride: read longer texts in windows, this many tokens apart; 0: they are truncated.
      batch_size: batch size.
      products: type of the operands of matrix products, see `matmul_precision`; default: float32.
      format: format of the input, if its name does not say it.

    Returns:
      `texts`, `width`, `texts_per_second`, and counts of empty and truncated texts.

    Example:
      $ xlnet embed --model=runs/model --input=texts.txt --output=texts.npy
    """
    if format and input == STANDARD:
        raise ConfigError("format: expected input from a file, got standard input")
    if layers and layer != -1:
        raise ConfigError("layer: expected without layers, which are read instead of it")
    with loading_tensorflow():
        from official.xlnet.jobs.file_embedding import EmbeddingCall, embed_texts
    call = EmbeddingCall(
        model=model,
        input=input,
        output=output,
        pooling=pooling,
        layer=layer,
        layers=layers,
        max_length=max_length,
        window_stride=window_stride,
        batch_size=batch_size,
        products=products,
        format=format,
    )
    return embed_texts(call)
