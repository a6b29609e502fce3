"""Steps per token: how many blocks each token of a text goes through, where depth is adaptive."""

from __future__ import annotations

import dataclasses

import numpy as np

from official.xlnet.analysis.attention_maps import load_xlnet, pack_text, pieces_of, read_text
from official.xlnet.checkpoints.any_format import load_tokenizer
from official.xlnet.runtime.pictures import new_figure, png
from official.xlnet.tokenization.tokenizer import WORD_START

_ROW_TOKENS = 32
_ROW_INCHES = 2.0


@dataclasses.dataclass(frozen=True)
class TokenSteps:
    """Steps of the tokens of a text.

    Attributes:
      pieces: the tokens, followed by SEP and CLS.
      num_steps: int32 [T], number of blocks that each went through.
      most: number of layers, L.
    """

    pieces: list[str]
    num_steps: np.ndarray
    most: int


def token_steps(
    model_dir: str, text: str, max_tokens: int = 128, text_pair: str | None = None
) -> TokenSteps:
    """Counts the steps of each token of a text, as the model reads it; see `read_text`.

    Args:
      model_dir: the model directory.
      text: the input text; SEP and CLS are appended.
      max_tokens: maximum number of tokens; longer texts are truncated.
      text_pair: a second text, its own segment with a SEP of its own. Default: none.

    Returns:
      The steps; all of them L unless `model.depth` is `adaptive`.

    Raises:
      ConfigError: the configuration is missing or invalid.
      DataError: the checkpoint or vocabulary is missing or damaged, or the text is empty.

    Example:
      >>> token_steps("runs/universal/model", "The cat sat.").num_steps
      array([2, 4, 3, 1, 1, 2], dtype=int32)
    """
    tokenizer, encoder = load_tokenizer(model_dir), load_xlnet(model_dir)
    inputs = pack_text(tokenizer, text, max_tokens, text_pair)
    num_steps = read_text(encoder, inputs, return_num_steps=True)["num_steps"][0].numpy()
    return TokenSteps(pieces_of(tokenizer, inputs), num_steps, encoder.config.model.num_layers)


def as_png(steps: TokenSteps) -> bytes:
    """Draws the steps of each token as a bar, in rows of text.

    Args:
      steps: the steps.

    Returns:
      The image as PNG.
    """
    starts = range(0, len(steps.pieces), _ROW_TOKENS)
    figure = new_figure(10, _ROW_INCHES * len(starts))
    for axes, start in zip(figure.subplots(len(starts), squeeze=False)[:, 0], starts, strict=True):
        row = slice(start, start + _ROW_TOKENS)
        pieces = [piece.replace(WORD_START, " ") for piece in steps.pieces[row]]
        axes.bar(range(len(pieces)), steps.num_steps[row], color="#29619f")
        axes.set_xticks(range(len(pieces)), pieces, rotation=60, ha="right", parse_math=False)
        axes.set(xlim=(-0.6, _ROW_TOKENS - 0.4), ylim=(0, steps.most), ylabel="steps")
        axes.yaxis.get_major_locator().set_params(integer=True)
    figure.tight_layout()
    return png(figure)
