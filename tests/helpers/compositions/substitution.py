"""Models of Keras in all forms, around an encoder or around `Embedding(mask_zero=True)`.

A model is a form (functional, sequential, …) and what follows the token vectors (pooling, a
recurrent layer, …). The vectors come from an encoder, or from an embedding in its place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.tokenization.special_tokens import PAD_ID
from tests.helpers.tiny import VOCAB, tiny_config

LAYERS = keras.layers
NUM_ROWS, NUM_TOKENS, NUM_CLASSES = 4, 7, 3
SOURCES = ("embedding", "encoder")
_PADDING = {"embedding": 0, "encoder": PAD_ID}
# The tokens of each row; both halves of a batch have as many, as replicas average their losses.
_TOKENS_OF_ROWS = (slice(0, 7), slice(0, 4), slice(0, 7), slice(3, 7))


def _in_turn(layers: list, x: Any) -> Any:
    for layer in layers:
        x = layer(x)
    return x


def _beside_attention(layers: list, x: Any) -> Any:
    attention, pooling, recurrent, concatenate, dense = layers
    return dense(concatenate([recurrent(x), pooling(attention(x, x)), pooling(x)]))


def _scores(layers: list, x: Any) -> Any:
    attention, pooling, dense = layers
    return dense(pooling(attention([x, x])))


def _added(layers: list, x: Any) -> Any:
    attention, add, recurrent, dense = layers
    return dense(recurrent(add([x, attention(x, x)])))


@dataclasses.dataclass(frozen=True)
class Follow:
    """What follows the token vectors.

    Attributes:
      new_layers: creates the layers.
      call: from the layers and vectors [B, T, D] to logits [B, C] or [B, T, C].
      is_of_tokens: whether there are logits for each token.
    """

    new_layers: Callable[[], list]
    call: Callable[[list, Any], Any] = _in_turn
    is_of_tokens: bool = False


FOLLOWS = {
    "pooling": Follow(lambda: [LAYERS.GlobalAveragePooling1D(), _dense()]),
    "recurrent": Follow(lambda: [LAYERS.GRU(3, return_sequences=True), LAYERS.LSTM(3), _dense()]),
    "bidirectional": Follow(lambda: [LAYERS.Bidirectional(LAYERS.LSTM(2)), _dense()]),
    "attention": Follow(
        lambda: [
            LAYERS.MultiHeadAttention(2, 3),
            LAYERS.GlobalAveragePooling1D(),
            LAYERS.GRU(3),
            LAYERS.Concatenate(),
            _dense(),
        ],
        _beside_attention,
    ),
    "scores": Follow(
        lambda: [LAYERS.Attention(), LAYERS.GlobalAveragePooling1D(), _dense()], _scores
    ),
    "normalization": Follow(
        lambda: [
            LAYERS.LayerNormalization(),
            LAYERS.Dropout(0.0),
            LAYERS.BatchNormalization(),
            LAYERS.GRU(3),
            _dense(),
        ]
    ),
    "add": Follow(
        lambda: [
            LAYERS.MultiHeadAttention(2, 3),
            LAYERS.Add(),
            LAYERS.Bidirectional(LAYERS.GRU(3)),
            _dense(),
        ],
        _added,
    ),
    "token head": Follow(
        lambda: [LAYERS.Dense(5, activation="tanh"), LAYERS.Dropout(0.0), _dense()],
        is_of_tokens=True,
    ),
    "recurrent tokens": Follow(
        lambda: [LAYERS.Bidirectional(LAYERS.GRU(2, return_sequences=True)), _dense()],
        is_of_tokens=True,
    ),
}


def _dense() -> Any:
    return LAYERS.Dense(NUM_CLASSES)


def new_source(source: str) -> Any:
    """The layer of the token vectors."""
    if source == "embedding":
        return LAYERS.Embedding(VOCAB, 11, mask_zero=True)
    return XLNetEncoder(tiny_config(num_layers=1), reuse_len=0, mem_len=0)


def vectors_of(outputs: Any) -> Any:
    """Vectors [B, T, D] of the outputs of a source."""
    return outputs["content"] if isinstance(outputs, dict) else outputs


@keras.utils.register_keras_serializable("tests.substitution")
class Content(LAYERS.Layer):
    """Takes `content` out of the outputs of an encoder, in a model of layers in turn."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, outputs):
        return vectors_of(outputs)


@keras.utils.register_keras_serializable("tests.substitution")
class Subclassed(keras.Model):
    """A model of a user's own class."""

    def __init__(self, source, follow, **kwargs):
        super().__init__(**kwargs)
        self.source, self.follow = source, follow
        self.parts = FOLLOWS[follow].new_layers()

    def call(self, ids):
        return FOLLOWS[self.follow].call(self.parts, vectors_of(self.source(ids)))

    def get_config(self):
        source = keras.saving.serialize_keras_object(self.source)
        return {**super().get_config(), "source": source, "follow": self.follow}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        return cls(keras.saving.deserialize_keras_object(config.pop("source")), **config)


def _ids() -> Any:
    return keras.Input([None], dtype=tf.int32)


def _functional(source: str, follow: Follow) -> Any:
    ids = _ids()
    return keras.Model(ids, follow.call(follow.new_layers(), vectors_of(new_source(source)(ids))))


def _sequential(source: str, follow: Follow) -> Any:
    return keras.Sequential([_ids(), new_source(source), Content(), *follow.new_layers()])


def _without_inputs(source: str, follow: Follow) -> Any:
    return keras.Sequential([new_source(source), Content(), *follow.new_layers()])


def _two(source: str, follow: Follow) -> Any:
    ids = _ids()
    vectors = LAYERS.Add()([vectors_of(new_source(source)(ids)) for _ in range(2)])
    return keras.Model(ids, follow.call(follow.new_layers(), vectors))


def _shared(source: str, follow: Follow) -> Any:
    first, second = _ids(), _ids()
    layer, layers = new_source(source), follow.new_layers()
    outputs = [follow.call(layers, vectors_of(layer(ids))) for ids in (first, second)]
    return keras.Model([first, second], outputs)


def _siamese(source: str, follow: Follow) -> Any:
    tower = _functional(source, follow)
    first, second = _ids(), _ids()
    outputs = [tower(first), tower(second)]
    return keras.Model(
        [first, second], outputs if follow.is_of_tokens else LAYERS.Subtract()(outputs)
    )


def _several(source: str, follow: Follow) -> Any:
    ids = keras.Input([None], dtype=tf.int32, name="ids")
    numbers = keras.Input([2], name="numbers")
    vectors = vectors_of(new_source(source)(ids))
    both = LAYERS.Concatenate()([LAYERS.GlobalAveragePooling1D()(vectors), numbers])
    outputs = {
        "first": follow.call(follow.new_layers(), vectors),
        "second": LAYERS.Dense(NUM_CLASSES)(both),
    }
    return keras.Model({"ids": ids, "numbers": numbers}, outputs)


FORMS = {
    "functional": _functional,
    "sequential": _sequential,
    "without inputs": _without_inputs,
    "subclassed": None,
    "two": _two,
    "shared": _shared,
    "siamese": _siamese,
    "several": _several,
}
# Forms and what follows: layers in turn alone make a sequential model.
PAIRS = [
    (form, follow)
    for form in FORMS
    for follow in FOLLOWS
    if form not in ("sequential", "without inputs") or FOLLOWS[follow].call is _in_turn
]


@dataclasses.dataclass(frozen=True)
class Expected:
    """Losses and metrics of an output, by NumPy.

    Attributes:
      loss: mean cross entropy in nats, with weights of rows.
      accuracy: share of right answers.
      weighted: the same, with weights of rows.
    """

    loss: float
    accuracy: float
    weighted: float


@dataclasses.dataclass(frozen=True)
class Composition:
    """A form of model, what follows the token vectors, and what they come from."""

    form: str
    follow: str
    source: str

    def new_model(self, seed: int = 1) -> Any:
        """A model that is built, and not compiled."""
        keras.utils.set_random_seed(seed)
        if self.form == "subclassed":
            model = Subclassed(new_source(self.source), self.follow)
        else:
            model = FORMS[self.form](self.source, FOLLOWS[self.follow])
        if not model.built:
            model(self.inputs())
        return model

    @property
    def is_of_pairs(self) -> bool:
        """Whether there are two inputs of ids."""
        return self.form in ("shared", "siamese")

    def ids(self, seed: int) -> np.ndarray:
        """Token ids int32 [B, T], of rows with padding on the left, on the right and without."""
        ids = np.random.default_rng(seed).integers(9, VOCAB, (NUM_ROWS, NUM_TOKENS), np.int32)
        for row, tokens in enumerate(_TOKENS_OF_ROWS):
            padded = np.full_like(ids[row], _PADDING[self.source])
            padded[tokens] = ids[row, tokens]
            ids[row] = padded
        return ids

    def inputs(self, rows: slice = slice(None), tokens: slice = slice(None)) -> Any:
        """Inputs of some rows and tokens."""
        first, second = (self.ids(seed)[rows, tokens] for seed in (0, 1))
        if self.is_of_pairs:
            return [first, second]
        if self.form == "several":
            numbers = np.random.default_rng(2).standard_normal((NUM_ROWS, 2)).astype(np.float32)
            return {"ids": first, "numbers": numbers[rows]}
        return first

    @property
    def are_of_tokens(self) -> list[bool]:
        """For each output whether it has logits of tokens."""
        is_of_tokens = FOLLOWS[self.follow].is_of_tokens
        if self.form == "several":
            return [is_of_tokens, False]
        is_pair = self.form == "shared" or (self.form == "siamese" and is_of_tokens)
        return [is_of_tokens] * (1 + is_pair)

    def _by_output(self, values: list) -> Any:
        if self.form == "several":
            return dict(zip(("first", "second"), values, strict=True))
        return values[0] if len(values) == 1 else values

    def labels(self, rows: slice = slice(None)) -> Any:
        """Labels of rows, or of their tokens."""
        rng, labels = np.random.default_rng(3), []
        for is_of_tokens in self.are_of_tokens:
            shape = (NUM_ROWS, NUM_TOKENS) if is_of_tokens else (NUM_ROWS,)
            labels.append(rng.integers(0, NUM_CLASSES, shape)[rows])
        return self._by_output(labels)

    def weights(self, rows: slice = slice(None)) -> Any:
        """Weights of rows, or of their tokens."""
        rng, weights = np.random.default_rng(4), []
        for is_of_tokens in self.are_of_tokens:
            shape = (NUM_ROWS, NUM_TOKENS) if is_of_tokens else (NUM_ROWS,)
            weights.append(rng.uniform(0.5, 2.0, shape).astype(np.float32)[rows])
        return self._by_output(weights)

    def compile(self, model: Any, **options) -> None:
        """Compiles a model with a loss and metrics for each output."""
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        accuracy = keras.metrics.SparseCategoricalAccuracy
        numbers = range(len(self.are_of_tokens))
        model.compile(
            keras.optimizers.SGD(0.1, momentum=0.9),
            self._by_output([loss for _ in numbers]),
            metrics=self._by_output([[accuracy(name=f"accuracy_{n}")] for n in numbers]),
            weighted_metrics=self._by_output([[accuracy(name=f"weighted_{n}")] for n in numbers]),
            **options,
        )

    def predict(self, model: Any, **inputs) -> list[np.ndarray]:
        """Predictions of all outputs."""
        predictions = model.predict_on_batch(self.inputs(**inputs))
        return [np.asarray(x) for x in tf.nest.flatten(predictions)]

    def expected(self, predictions: list[np.ndarray], rows: slice = slice(None)) -> list[Expected]:
        """Losses and metrics of each output, by NumPy, from predictions of all rows."""
        found = []
        labels, weights_of_outputs = (tf.nest.flatten(x) for x in (self.labels(), self.weights()))
        for number, is_of_tokens in enumerate(self.are_of_tokens):
            logits = predictions[number].astype(np.float64)
            log_sums = np.log(np.exp(logits).sum(-1))
            picked = np.take_along_axis(logits, labels[number][..., None], -1)[..., 0]
            losses, is_right = log_sums - picked, logits.argmax(-1) == labels[number]
            weights, is_real = weights_of_outputs[number], np.ones(NUM_ROWS)
            if is_of_tokens:
                is_real = self.ids(number) != _PADDING[self.source]
            losses, is_right, weights, is_real = (
                x[rows] for x in (losses, is_right, weights, is_real)
            )
            found.append(
                Expected(
                    float((losses * weights * is_real).sum() / is_real.sum()),
                    float((is_right * is_real).sum() / is_real.sum()),
                    float((is_right * weights * is_real).sum() / (weights * is_real).sum()),
                )
            )
        return found
