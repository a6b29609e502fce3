"""A text in a model: attention probabilities of all layers and heads, and steps per token.

The number of steps of a token is the number of blocks that it goes through, where the depth of the
model is adaptive.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import tensorflow as tf
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from official.xlnet.checkpoints.any_format import load_tokenizer
from official.xlnet.checkpoints.restoring import load_encoder
from official.xlnet.configs.registry import PUBLIC_NAMES
from official.xlnet.errors import ConfigError, DataError, require_config
from official.xlnet.files.arguments import AnyPath
from official.xlnet.files.public import public
from official.xlnet.files.schema import Range
from official.xlnet.modeling.networks.encoder import Encoder
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.modeling.objectives.permutation_sampling import causal_order
from official.xlnet.projects.pictures.attention_patterns import find_patterns
from official.xlnet.runtime.display import DisplayMixin
from official.xlnet.runtime.pictures import bars_of_pieces, new_figure
from official.xlnet.tokenization.graph.packing import pack_columns
from official.xlnet.tokenization.tokenizer import Tokenizer

_CELL_INCHES = 1.8
_LEAST_COLUMNS = 4
_COLORS = "magma_r"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class AttentionMaps(DisplayMixin):
    """Attention probabilities of a text.

    Attributes:
      pieces: the tokens, followed by SEP and CLS.
      weights: float32 [L, N, T, T]; `weights[l, n, i, j]` is the attention probability from
        token i (query) to token j (key) in head n of layer l.
    """

    pieces: list[str]
    weights: np.ndarray

    def plot(self, layers: Sequence[int] = (), heads: Sequence[int] = ()) -> Figure:
        """Draws a grid of layers (rows) and heads (columns).

        Below them are the heads with the strongest score for each attention pattern.

        Args:
          layers: indices of the layers to draw. Default: all.
          heads: indices of the heads to draw. Default: all.
        """
        matches = find_patterns(self.weights)
        layers = layers or range(self.weights.shape[0])
        heads = heads or range(self.weights.shape[1])
        num_columns = max(len(heads), _LEAST_COLUMNS)
        num_rows = len(layers) + math.ceil(len(matches) / num_columns)
        figure = new_figure(_CELL_INCHES * num_columns, _CELL_INCHES * 1.15 * num_rows)
        for row, layer in enumerate(layers):
            for column, head in enumerate(heads):
                cell = num_columns * row + column + 1  # matplotlib counts from 1.
                self._draw(figure.add_subplot(num_rows, num_columns, cell), layer, head)
        first_match = num_columns * len(layers) + 1
        for cell, match in enumerate(matches, start=first_match):
            axes = figure.add_subplot(num_rows, num_columns, cell)
            pattern = f"{match.pattern} {match.strength:.2f}\n"
            self._draw(axes, match.layer, match.head, pattern)
        figure.tight_layout()
        return figure

    def _draw(self, axes: Axes, layer: int, head: int, pattern: str = "") -> None:
        """Draws the map of a head, with the pattern in its title."""
        axes.set_axis_off()
        weights_TT = np.sqrt(self.weights[layer, head])  # Makes small weights visible.
        axes.imshow(weights_TT, cmap=_COLORS, vmin=0.0, interpolation="nearest")
        axes.set_title(f"{pattern}layer {layer}, head {head}", fontsize=8)


@PUBLIC_NAMES.register("attention_maps")
@public()
def attention_maps(
    model: AnyPath | Encoder,
    text: str,
    max_tokens: Annotated[int, Range(1)] = 128,
    text_pair: str | None = None,
    tokenizer: Tokenizer | None = None,
) -> AttentionMaps:
    """Computes the attention maps of a text, as the model reads it; see `read_text`.

    Args:
      model: the model directory, or a loaded encoder.
      text: the input text; SEP and CLS are appended.
      max_tokens: maximum number of tokens; longer texts are truncated.
      text_pair: a second text, its own segment with a SEP of its own. Default: none.
      tokenizer: the tokenizer of a loaded encoder.

    Returns:
      The attention maps of all layers and heads.

    Raises:
      ConfigError: the configuration is missing or invalid, or a loaded encoder comes without its
        tokenizer.
      DataError: the checkpoint or vocabulary is missing or damaged, or the text is empty.

    Example:
      >>> attention_maps("runs/tiny/model", "The cat sat.").weights.shape
      (2, 4, 7, 7)
    """
    if isinstance(model, str):
        model, tokenizer = load_encoder(model), load_tokenizer(model)
    if tokenizer is None:
        raise ConfigError("tokenizer: expected the tokenizer of the encoder, got None")
    texts = [text] if text_pair is None else [text, text_pair]
    pieces, inputs = read_text(model, tokenizer, texts, max_tokens)
    outputs = model(inputs, return_attention_scores=True)
    return AttentionMaps(pieces, outputs["attention_scores"][:, 0].numpy())


def read_text(
    encoder: Encoder, tokenizer: Tokenizer, texts: list[str], max_tokens: int
) -> tuple[list[str], dict[str, tf.Tensor]]:
    """Converts a text to inputs: attention is to both sides, to the left for a causal model.

    Args:
      encoder: the encoder.
      tokenizer: its tokenizer.
      texts: the text, or two texts, each a segment of its own.
      max_tokens: maximum number of tokens; longer texts are truncated.

    Returns:
      The word pieces, and the inputs of the encoder for a batch of size 1.

    Raises:
      DataError: the text is empty.
    """
    ids_of_texts = []
    for text in texts:
        ids = tokenizer.encode(text)
        if not ids:
            raise DataError(f"expected a text, got {text!r}")
        ids_of_texts.append(ids)
    num_tokens = min(sum(map(len, ids_of_texts)), max_tokens)
    length = num_tokens + len(texts) + 1  # A SEP after each text, and CLS.
    packed = pack_columns([[ids] for ids in ids_of_texts], length)
    inputs = {name: packed[name] for name in ("token_ids", "segment_ids")}
    if encoder.config.reads_left_to_right:
        inputs["order"] = causal_order(1, length)
    pieces = [tokenizer.id_to_piece(int(i)) for i in packed["token_ids"][0]]
    return pieces, inputs


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TokenSteps(DisplayMixin):
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
    model_dir: str,
    text: str,
    max_tokens: Annotated[int, Range(1)] = 128,
    text_pair: str | None = None,
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
    tokenizer, encoder = load_tokenizer(model_dir), load_encoder(model_dir)
    network = encoder.config.model.network
    is_xlnet = isinstance(encoder, XLNetEncoder)
    require_config(is_xlnet, "model.network", "xlnet to inspect a text", network)
    texts = [text] if text_pair is None else [text, text_pair]
    pieces, inputs = read_text(encoder, tokenizer, texts, max_tokens)
    outputs = encoder(inputs, return_num_steps=True)
    return TokenSteps(pieces, outputs["num_steps"][0].numpy(), encoder.config.model.num_layers)
