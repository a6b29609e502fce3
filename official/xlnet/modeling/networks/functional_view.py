"""An encoder as a functional Keras model, which can be cut at each block.

The layers of the model are parts of the encoder, and share its weights:

    token ids -> embeddings -> layer_0 -> layer_1 -> … -> content
                                 |          |
                                 └──────────┴──> memory
"""

from __future__ import annotations

import json
import threading
import types
import weakref
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from official.xlnet.configs.validation import require, require_one_of
from official.xlnet.modeling.depth.stacked import StackedDepth
from official.xlnet.modeling.kernels.factored_position import FactoredSinusoids
from official.xlnet.modeling.kernels.stateless_dropout import dropout_seed_of_call
from official.xlnet.modeling.layers import relative_position
from official.xlnet.modeling.layers.relative_position import Sinusoids
from official.xlnet.modeling.ops.keras import Layer, is_symbolic, keras
from official.xlnet.modeling.ops.keras_files import has_group, require_same_adapters
from official.xlnet.modeling.ops.symbolic_tensors import set_symbolic_mask
from official.xlnet.modeling.ops.visibility import TwoStreamMask, named


def functional_view(encoder: Any, inputs: Sequence[str] = ("token_ids",)) -> keras.Model:
    """Creates a functional model of an encoder; see `XLNetEncoder.functional`."""
    kind, depth = type(encoder.depth), encoder.model.depth
    runs_once = kind.call is StackedDepth.call and kind.encoded is StackedDepth.encoded
    require(runs_once, "functional: model.depth", "one that runs each block once", depth)
    require("token_ids" in inputs, "inputs", "token_ids among them", list(inputs))
    if not encoder.built:
        encoder.build()
    tensors = {name: _input(name, encoder) for name in inputs}
    token_ids, memory = tensors["token_ids"], tensors.get("memory")
    first = token_ids if len(tensors) == 1 else tensors

    rows, mask, table = EncoderStart(encoder)(first)
    if is_symbolic(rows):
        set_symbolic_mask(rows, token_ids, tensors.get("is_padding"), None)
    layer_inputs = []
    options = {name: tensors[name] for name in ("memory", "is_reversed") if name in tensors}
    for layer in range(len(encoder.blocks)):
        layer_inputs.append(rows)
        block = EncoderBlock(encoder, layer)
        rows = block(rows, attention_mask=mask, position_encoding=table, **options)
    outputs = {"content": EncoderContent(encoder)(rows)}
    if encoder.mem_len and layer_inputs:
        of_memory = {} if memory is None else {"memory": memory}
        outputs["memory"] = EncoderMemory(encoder)(layer_inputs, **of_memory)
    return keras.Model(first, outputs, name=f"{encoder.name}_functional")


def _input(name: str, encoder: Any) -> Any:
    """The symbolic input of a name."""
    model, of_tokens = encoder.model, (None, None)
    memory = (model.num_layers, None, None, model.d_model)
    forms: dict[str, tuple[tuple[int | None, ...], Any]] = {
        "token_ids": (of_tokens, tf.int32),
        "segment_ids": (of_tokens, tf.int32),
        "is_padding": (of_tokens, tf.bool),
        "is_reversed": ((None,), tf.bool),
        "memory": (memory, encoder.compute_dtype),
        "memory_length": ((None,), tf.int32),
    }
    require_one_of("inputs", name, forms)
    shape, dtype = forms[name]
    return keras.Input(batch_shape=shape, dtype=dtype, name=name)


class EncoderPart(Layer):
    """Base class of layers that are parts of an encoder.

    Args:
      encoder: the `XLNetEncoder`. The layer has the weights of its part alone, and all settings.
    """

    def __init__(self, encoder: Any, **kwargs):
        super().__init__(**{"dtype": encoder.dtype_policy, **kwargs})
        self.supports_masking = True
        if not encoder.built:  # As of a file.
            encoder.build()
        # In a plain object: other parts of the encoder are not parts of this layer.
        self._hidden = types.SimpleNamespace(encoder=encoder)
        encoder._view_layers.add(self)

    def build(self, input_shape):
        """Does nothing: the encoder is built."""
        self.built = True

    @property
    def encoder(self) -> Any:
        """The encoder."""
        return self._hidden.encoder

    def update_adapters(self) -> None:
        """Does nothing: only blocks have adapters."""

    def __dir__(self):
        # Files of Keras hold what is listed here.
        return [name for name in super().__dir__() if name != "encoder"]

    def get_config(self):
        # Not serialized here: Keras then notes that parts have one encoder.
        return {**super().get_config(), "encoder": self.encoder}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "encoder": _COPIES.encoder_for(config["name"], config["encoder"])})


class _Copies(threading.local):
    """The encoders of copied parts: the parts of one copy of a model have one encoder.

    Keras copies each layer by itself. A part belongs to the last copy of its encoder, unless that
    has such a part already, which then is of another copy of the model.
    """

    def __init__(self):
        self.encoders: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()

    def encoder_for(self, name: str, encoder: Any) -> Any:
        """Returns the copy of an encoder that a new part belongs to.

        Args:
          name: name of the part.
          encoder: the encoder, or its configuration as Keras serializes it.
        """
        if not isinstance(encoder, dict):
            encoder = keras.saving.serialize_keras_object(encoder)
        key = json.dumps({**encoder, "shared_object_id": None}, sort_keys=True)
        copied = self.encoders.get(key)
        if copied is None or any(part.name == name for part in copied._view_layers):
            copied = keras.saving.deserialize_keras_object(encoder)
            self.encoders[key] = copied
        return copied


_COPIES = _Copies()


@keras.utils.register_keras_serializable(package="xlnet")
class EncoderStart(EncoderPart):
    """Embedding, attention mask and position encoding: what the first block takes.

    Call arguments:
      inputs: as `XLNetEncoder` takes them, without those of the query stream.
      training: whether dropout is applied.

    Returns:
      Hidden states [B, T, D], a `TwoStreamMask` and `Sinusoids` or `FactoredSinusoids`.
    """

    # tf_keras keeps the mask that `call` sets.
    _compute_output_and_mask_jointly = True

    def __init__(self, encoder: Any, name: str = "embeddings", **kwargs):
        kwargs.setdefault("trainable", encoder.word_embedding.trainable)
        super().__init__(encoder, name=name, **kwargs)
        self.word_embedding = encoder.word_embedding
        self.word_embedding.trainable = self.trainable

    def call(self, inputs: Any, training: bool | None = None):
        encoder = self.encoder
        inputs = encoder._checked(inputs)
        seed = dropout_seed_of_call(training, None)
        rows_BTD, mask, table, _ = encoder._start(inputs, seed)
        encoder.mark_padding({"content": rows_BTD}, inputs["is_padding"])
        return rows_BTD, mask, table


@keras.utils.register_keras_serializable(package="xlnet")
class EncoderBlock(EncoderPart):
    """A block of an encoder.

    Args:
      encoder: the encoder.
      layer: number of the block, from 0.

    Call arguments:
      hidden_states: [B, T, D].
      attention_mask: a `TwoStreamMask`.
      position_encoding: `Sinusoids` or `FactoredSinusoids`.
      memory: [L, B, M, D], of all blocks. Default: none.
      is_reversed: bool [B]. Default: none.
      training: whether dropout is applied.

    Returns:
      Hidden states [B, T, D].
    """

    def __init__(self, encoder: Any, layer: int, **kwargs):
        block = encoder.blocks[layer]
        kwargs.setdefault("trainable", block.trainable)
        super().__init__(encoder, **{"name": f"layer_{layer}", **kwargs})
        self.layer, self.block, self.lora = layer, block, None
        self.shared_biases = encoder.shared_biases
        self.update_adapters()
        block.trainable = self.trainable

    def update_adapters(self) -> None:
        """Has this layer train and save the adapters that the encoder has now."""
        if self.lora is not None:
            self.lora = None
            self._delete_tracking("lora")
        self.lora = getattr(self.encoder.lora, self.block.name.rpartition("/")[2], None)

    def call(
        self,
        hidden_states: tf.Tensor,
        attention_mask: TwoStreamMask,
        position_encoding: Sinusoids | FactoredSinusoids,
        memory: tf.Tensor | None = None,
        is_reversed: tf.Tensor | None = None,
        training: bool | None = None,
    ) -> tf.Tensor:
        rows_BTD, _ = self.encoder._run_block(
            self.layer,
            tf.identity(hidden_states),  # Without the Keras mask, which a block does not read.
            named(attention_mask),
            relative_position.named(position_encoding),
            {"memory": memory, "is_reversed": is_reversed},
            dropout_seed_of_call(training, None),
            training,
        )
        return rows_BTD

    def load_own_variables(self, store):
        """Loads nothing, as all variables are in parts.

        Raises:
          ConfigError: the file has adapters and the encoder has none, or the other way round.
        """
        require_same_adapters(self.lora is not None, has_group(store, "lora"))
        super().load_own_variables(store)

    def get_config(self):
        return {**super().get_config(), "layer": self.layer}


@keras.utils.register_keras_serializable(package="xlnet")
class EncoderContent(EncoderPart):
    """The `content` of an encoder: the hidden states after the last block, with dropout."""

    def __init__(self, encoder: Any, name: str = "content", **kwargs):
        super().__init__(encoder, name=name, **kwargs)

    def call(self, hidden_states: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        return self.encoder._finish(hidden_states, dropout_seed_of_call(training, None))


@keras.utils.register_keras_serializable(package="xlnet")
class EncoderMemory(EncoderPart):
    """The memory of the next call, [L, B, M, D].

    Call arguments:
      layer_inputs: list of the hidden states before each block.
      memory: the memory of this call. Default: none.
    """

    def __init__(self, encoder: Any, name: str = "next_memory", **kwargs):
        super().__init__(encoder, name=name, **kwargs)

    def call(self, layer_inputs: list[tf.Tensor], memory: tf.Tensor | None = None) -> tf.Tensor:
        return self.encoder._next_memory(memory, layer_inputs)

    def compute_mask(self, inputs, mask=None):
        """Returns None: columns of the memory are not tokens."""
        return None
