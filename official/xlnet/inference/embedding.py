"""Embeddings of texts: one vector for each text, or one for each of its tokens."""

from __future__ import annotations

import concurrent.futures
import functools
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
import tensorflow as tf

from official.xlnet.checkpoints.any_format import load_tokenizer
from official.xlnet.checkpoints.restoring import load_encoder
from official.xlnet.configs.choices import POOLINGS
from official.xlnet.configs.validation import require
from official.xlnet.errors import ConfigError
from official.xlnet.files.arguments import AnyPath
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf, Range
from official.xlnet.inference.language_model import PickledByPath
from official.xlnet.inference.network.inference_encoder import InferenceEncoder, finite
from official.xlnet.inference.network.length_buckets import default_lengths
from official.xlnet.inference.text_parts import Span
from official.xlnet.modeling.networks import Encoder
from official.xlnet.runtime.cores import num_cores
from official.xlnet.tasks.batching import batches_of_equal
from official.xlnet.tokenization.batches.arguments import checked_texts
from official.xlnet.tokenization.graph.packing import check_length, pack, padded
from official.xlnet.tokenization.graph.ragged import ragged
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.word_spans import word_spans


@public()
def embed(
    model: AnyPath | Encoder,
    texts: str | Sequence[str],
    pooling: str = "mean",
    layer: int | Sequence[int] = -1,
    max_length: int | None = None,
    batch_size: int = 32,
    tokenizer: Tokenizer | None = None,
    window_stride: int = 0,
) -> np.ndarray:
    """Returns the embeddings of texts. To embed often, make a `TextEmbedder` and keep it.

    Args:
      model: a model directory, or an encoder with its `tokenizer`.
      texts: the texts; a single string is a single text. See `TextEmbedder`.
      pooling: `mean` of the vectors of all tokens, SEP and CLS among them; `text_mean` without
        these two, 0 for an empty text; `cls`, the vector of CLS; `none`, every token's vector; or
        `words`, the mean over the tokens of each word, see `TextEmbedder.parts`.
      layer: hidden state to take: 0 is the word embedding, L the output of the last layer, and
        negative numbers count from it. Of several, the vectors are put side by side.
      max_length: longest input in tokens, SEP and CLS among them. Default: `data.seq_len`.
      batch_size: texts of a batch; several batches run side by side.
      tokenizer: the tokenizer of an encoder; a model directory contains its own.
      window_stride: longer texts are read in windows that are this many tokens apart, and have the
        mean over their windows, or, for each token, over the windows that hold it; 0: they lose
        their end.

    Returns:
      float32 [N, D], a row for each text in its order. For `none` and `words` [N, T, D], T tokens
      or words of the longest text, and zeros on the left of shorter ones. A single string has no
      axis N.

    Raises:
      ConfigError: an argument is out of range, or an encoder comes without tokenizer.
      DataError: the directory holds no usable model, `max_length` leaves no room for text, or a
        vector is NaN or infinite.

    Example:
      >>> embed("runs/tiny", ["A fine film.", "Dull."]).shape
      (2, 128)
    """
    embedder = TextEmbedder(model, tokenizer, layer, max_length, window_stride)
    return embedder(texts, pooling, batch_size)


class TextEmbedder(PickledByPath):
    """An encoder that is ready to embed texts.

    A text is read as `tokens SEP CLS`, as in fine-tuning; an empty one as SEP CLS. Texts of about
    equal length run together, so that a short one costs little. The encoder's weights are copied,
    and a graph is made for each length when it is first needed.

    Args:
      encoder: a built encoder, or the path of its model, by which an embedder is pickled.
      tokenizer: the tokenizer of a built encoder.
      layer: see `embed`; layers above are not computed.
      max_length: see `embed`.
      window_stride: see `embed`.

    Attributes:
      max_length: longest input in tokens.
      width: length of a vector.
      num_truncated: number of texts so far that have lost their end.
      num_windows: number of texts, or windows of them, that have been embedded.

    Example:
      >>> embedder = TextEmbedder(encoder, tokenizer)
      >>> embedder("A fine film.").shape
      (128,)
    """

    @public()
    def __init__(
        self,
        encoder: AnyPath | Encoder,
        tokenizer: Tokenizer | None = None,
        layer: int | Sequence[int] = -1,
        max_length: Annotated[int, Range(1)] | None = None,
        window_stride: Annotated[int, Range(0)] = 0,
    ):
        if isinstance(encoder, str):
            self._made_from = encoder, None, layer, max_length, window_stride
            encoder, tokenizer = load_encoder(encoder), load_tokenizer(encoder)
        if tokenizer is None:
            raise ConfigError("tokenizer: expected the encoder's tokenizer, got none")
        num_layers = encoder.config.model.num_layers
        layers = list(layer) if isinstance(layer, Sequence) else [layer]
        for layer_number in layers:
            Range(-num_layers - 1, num_layers).check(layer_number, "layer")
        require(bool(layers), "layer", "at least one", layer)
        layers = [layer_number % (num_layers + 1) for layer_number in layers]
        max_length = encoder.config.data.seq_len if max_length is None else max_length
        check_length(1, max_length)
        self._window_stride = window_stride
        self._tokenizer, self.max_length, self.num_truncated = tokenizer, max_length, 0
        self.width = encoder.config.model.d_model * len(layers)
        self._layers = layers if len(layers) > 1 else []
        self._lengths = default_lengths(max_length)
        self._copy = functools.partial(InferenceEncoder, encoder, num_layers=max(layers))
        self._capacity = self.num_windows = 0
        self._require_capacity(min(max_length, encoder.config.data.seq_len))
        # The operations of one batch do not fill the cores, so that several run side by side.
        self._threads = concurrent.futures.ThreadPoolExecutor(num_cores())

    def __repr__(self) -> str:
        return f"TextEmbedder(width {self.width:,}, texts of up to {self.max_length:,} tokens)"

    @public()
    def __call__(
        self,
        texts: Any,
        pooling: Annotated[str, OneOf(POOLINGS)] = "mean",
        batch_size: Annotated[int, Range(1)] = 32,
    ) -> np.ndarray:
        """The embeddings; see `embed`."""
        if isinstance(texts, str):
            return self([texts], pooling, batch_size)[0]
        if pooling == "words":
            words = [vectors for _, vectors in self.parts(texts, pooling, batch_size)]
            longest = max(map(len, words), default=0)
            rows = [np.pad(x, [(longest - len(x), 0), (0, 0)]) for x in words]
            return np.array(rows, np.float32).reshape(len(rows), longest, self.width)
        ids = self._tokenizer.encode_batch(checked_texts(texts))
        windows = [
            (text, start) for text, row in enumerate(ids) for start in self._starts(len(row))
        ]
        rows = [ids[text][start : start + self.max_length] for text, start in windows]
        features = pack([ragged(rows)], min(self.max_length, 3 + max(map(len, rows), default=0)))
        sizes = features["token_ids"].row_lengths().numpy().tolist()
        longest = max(sizes, default=0)
        self._require_capacity(next(n for n in self._lengths if n >= longest))
        shape = [longest, self.width] if pooling == "none" else [self.width]
        result = np.zeros([len(sizes), *shape], np.float32)

        def run(batch: tuple[int, list[int]]) -> None:
            length, rows = batch
            inputs = padded({name: tf.gather(x, rows) for name, x in features.items()}, length)
            vectors = finite(self._graph(length, pooling)(**inputs).numpy())
            self.num_windows += len(rows)
            for row, i in enumerate(rows):
                if pooling == "none":
                    result[i, longest - sizes[i] :] = vectors[row, length - sizes[i] :]
                else:
                    result[i] = vectors[row]

        # The longest first.
        lengths = [-next(n for n in self._lengths if n >= size) for size in sizes]
        batches = [(-lengths[rows[0]], rows) for rows in batches_of_equal(lengths, batch_size)]
        for length, _ in batches:
            self._graph(length, pooling)  # Traced here, once, and not by two threads.
        if len(batches) == 1:
            run(batches[0])
        else:
            list(self._threads.map(run, batches))
        if len(windows) == len(ids):
            return result
        return _mean_over_windows(result, windows, sizes, list(map(len, ids)))

    @public()
    def parts(
        self,
        texts: Sequence[str],
        pooling: Annotated[str, OneOf(("words", "none"))] = "words",
        batch_size: Annotated[int, Range(1)] = 32,
    ) -> list[tuple[list[Span], np.ndarray]]:
        """Returns where the words of each text stand, and their vectors.

        Args:
          texts: the texts.
          pooling: `words`, or `none` for the tokens; none are returned for a truncated end.
          batch_size: texts of a batch.

        Returns:
          For each text, the start and end of each word in characters, as in `words_of`; and
          float32 [W, D], the mean over the tokens of each word.

        Example:
          >>> spans, vectors = embedder.parts(["A fine film."])[0]
          >>> spans, vectors.shape
          ([(0, 1), (2, 6), (7, 12)], (3, 128))
        """
        vectors_NTD = self(texts, "none", batch_size)[:, :-2]  # Without SEP and CLS.
        with self._tokenizer.uncounted():
            offsets_N = [self._tokenizer.encode_with_offsets(text)[1] for text in texts]
        parts = []
        for text, offsets, vectors_TD in zip(texts, offsets_N, vectors_NTD, strict=True):
            offsets = offsets[: vectors_NTD.shape[1]]
            tokens = ((span, [piece]) for piece, span in enumerate(offsets))
            groups = [*(word_spans(text, offsets) if pooling == "words" else tokens)]
            # Padding is on the left.
            means = [vectors_TD[np.array(group) - len(offsets)].mean(axis=0) for _, group in groups]
            vectors_WD = np.array(means, np.float32).reshape(len(groups), self.width)
            parts.append(([span for span, _ in groups], vectors_WD))
        return parts

    def _require_capacity(self, length: int) -> None:
        """Copies the encoder for inputs of this length, which costs memory for each distance."""
        if length > self._capacity:
            self._capacity, self._encoder = length, self._copy(length)
            self._graph = functools.cache(self._new_graph)

    def _starts(self, num_tokens: int) -> Sequence[int]:
        """The first tokens of the windows of a text."""
        room = self.max_length - 2  # Beside SEP and CLS.
        if num_tokens <= room or not self._window_stride:
            self.num_truncated += num_tokens > room
            return [0]
        stride = min(self._window_stride, room)
        return range(0, num_tokens - room + stride, stride)

    def _new_graph(self, length: int, pooling: str) -> Callable:
        """The encoder and the pooling for inputs of one length, [B, T] to [B, D] or [B, T, D]."""

        def vectors(token_ids, segment_ids, is_padding):
            content_BTD, _ = self._encoder(
                token_ids,
                is_padding,
                segment_ids,
                last_only=pooling == "cls",
                layers=self._layers,
            )
            if pooling == "cls":
                return content_BTD[:, -1]
            if pooling == "none":
                return content_BTD
            is_real_BT1 = tf.cast(~is_padding, tf.float32)[..., None]
            if pooling == "text_mean":  # SEP and CLS are the last two.
                content_BTD, is_real_BT1 = content_BTD[:, :-2], is_real_BT1[:, :-2]
            total_BD = tf.reduce_sum(content_BTD * is_real_BT1, axis=1)
            return tf.math.divide_no_nan(total_BD, tf.reduce_sum(is_real_BT1, axis=1))

        shape = [None, length]
        return tf.function(vectors, autograph=False).get_concrete_function(
            token_ids=tf.TensorSpec(shape, tf.int32),
            segment_ids=tf.TensorSpec(shape, tf.int32),
            is_padding=tf.TensorSpec(shape, tf.bool),
        )


def _mean_over_windows(
    vectors_W: np.ndarray, windows: list[tuple[int, int]], sizes: list[int], lengths: list[int]
) -> np.ndarray:
    """Vectors of texts, or of their tokens, on the right, SEP and CLS: means over windows.

    Args:
      vectors_W: vectors of the windows [W, D], or of their tokens [W, T, D].
      windows: text and first token of each window.
      sizes: number of tokens of each window, SEP and CLS included.
      lengths: number of tokens of each text.
    """
    shape = [max(lengths) + 2] * (vectors_W.ndim - 2)
    total = np.zeros([len(lengths), *shape, vectors_W.shape[-1]], np.float32)
    count = np.zeros([len(lengths), *shape, 1], np.float32)
    for (text, start), size, vectors in zip(windows, sizes, vectors_W, strict=True):
        place: Any = text
        if shape:  # Counted from the right.
            first, vectors = start - lengths[text] - 2, vectors[-size:]
            place = text, np.r_[first : first + size - 2, -2:0]
        total[place] += vectors
        count[place] += 1
    return total / np.maximum(count, 1)
