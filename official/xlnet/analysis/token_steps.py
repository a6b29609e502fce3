"""Steps per token: how many blocks each token of a text goes through, where depth is adaptive."""

from __future__ import annotations

import dataclasses

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from official.xlnet.analysis.attention_maps import load_xlnet, pack_text, pieces_of, read_text
from official.xlnet.checkpoints.any_format import load_tokenizer
from official.xlnet.runtime.pictures import Shown, bars_of_pieces


@dataclasses.dataclass(frozen=True, repr=False)
class TokenSteps(Shown):
    """Steps of the tokens of a text.

    Attributes:
      pieces: the tokens, followed by SEP and CLS.
      num_steps: int32 [T], number of blocks that each went through.
      most: number of layers, L.
    """

    pieces: list[str]
    num_steps: np.ndarray
    most: int

    def plot(self) -> Figure:
        """Draws the steps of each token as a bar, in rows of text."""
        figure = bars_of_pieces(self.pieces, self.num_steps, "steps", self.most)
        for axes in figure.axes:
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        return figure


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
