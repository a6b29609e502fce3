"""Base class of encoders, and the registry that `model.network` selects one from."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import NETWORKS
from official.xlnet.errors import ConfigError, require_config
from official.xlnet.modeling.layers.lm_head import LMHead
from official.xlnet.modeling.networks.encoder_inputs import (
    by_name,
    predicts_tokens,
    require_integers,
    rows_as_tensor,
)
from official.xlnet.modeling.ops.keras import (
    Layer,
    is_symbolic,
    keras,
    require_no_other_keras,
    with_name,
)
from official.xlnet.modeling.ops.shapes import sizes

if TYPE_CHECKING:
    from official.xlnet.modeling.layers.lora import Lora

Experiment = XLNetConfig | dict[str, Any]  # A configuration, or its dictionary.


class Encoder(Layer):
    """Base class of encoders, which map tokens to contextual vectors.

    A subclass creates two attributes: `word_embedding`, the layer of the word embedding, and
    `blocks`, the layers whose inputs are the hidden states. `build()` creates all its variables,
    and `lm_head_class` is the language-model head that belongs to it.

    A call takes the inputs of `XLNetEncoder`, as far as they apply, by name (`checked_inputs`), and
    `return_word_embedding` and `return_hidden_states`. It returns `content` [B, T, D], and if they
    are wanted `word_embedding` [V, D] and `hidden_states` [L + 1, B, T, D]. `mark_padding` gives
    `content` its Keras mask.

    Args:
      config: the configuration, or its dictionary; reads `model` and `data.reuse_len`.
      reuse_len: how many leading tokens of a window enter the memory; 0 means all of them.
        Default: `config.data.reuse_len`.
      mem_len: number of columns of the memory, M; 0 for no memory. Default:
        `config.model.mem_len`.
      lora_rank: rank of adapters, which are made with the other weights; 0 for none.
      lora_options: further arguments of `add_lora`.
      **kwargs: arguments of a Keras layer.

    Attributes:
      lora: the adapters; None without any. See `add_lora`.

    Raises:
      ConfigError: a value of `model` is out of range, or the size of the vocabulary is missing.
    """

    lm_head_class: type[LMHead] = LMHead

    def __init__(
        self,
        config: Experiment,
        reuse_len: int | None = None,
        mem_len: int | None = None,
        lora_rank: int = 0,
        lora_options: dict[str, Any] | None = None,
        **kwargs,
    ):
        config = XLNetConfig.of(config)
        model = config.model
        for settings in model.settings_in_use():
            settings.check()
        model.require_size()
        super().__init__(**with_name(kwargs, f"{model.network}_encoder"))
        self.config, self.model = config, model
        self.reuse_len = config.data.reuse_len if reuse_len is None else reuse_len
        self.mem_len = model.mem_len if mem_len is None else mem_len
        self.lora: Lora | None = None
        self._new_lora = types.SimpleNamespace(rank=lora_rank, options=lora_options or {})
        # Layers of functional views of this encoder, which have its adapters, too.
        self._view_layers: weakref.WeakSet = weakref.WeakSet()

    def build(self, input_shape=None):
        # Layers of the other Keras would be neither trained nor saved.
        require_no_other_keras(type(self).__name__, [self.word_embedding, *self.blocks])
        super().build(input_shape)
        if self._new_lora.rank:
            self.add_lora(self._new_lora.rank, **self._new_lora.options)

    def add_lora(self, rank: int, **options) -> None:
        """Adds adapters to the blocks, and freezes all other weights.

        Args:
          rank: see `add_lora`, the function.
          **options: further arguments of the function.
        """
        from official.xlnet.modeling.layers.lora import Lora

        self.lora = Lora(self.blocks, rank, dtype=self.dtype_policy, **options)
        self.lora.freeze(self._flatten_layers())
        self._update_views()

    def _update_views(self) -> None:
        """Tells the layers of functional views that adapters were added or merged."""
        for layer in self._view_layers:
            layer.update_adapters()

    def without_lora(self) -> Lora | None:
        """Takes the adapters out of the parts that Keras and checkpoints save; returns them."""
        lora, self.lora = self.lora, None
        self._delete_tracking("lora")
        return lora

    @property
    def lora_rank(self) -> int:
        """Rank of the adapters; 0 without any."""
        return self.lora.rank if self.lora else 0

    def lora_config(self) -> dict[str, Any]:
        """The arguments `lora_rank` and, unless they are the defaults, `lora_options`."""
        config: dict[str, Any] = {"lora_rank": self.lora_rank}
        options = self.lora.settings.options() if self.lora else {}
        if options:
            config["lora_options"] = options
        return config

    def load_own_variables(self, store):
        """Loads the variables of the encoder from a file of Keras.

        Raises:
          ConfigError: the file has adapters and the encoder has none, or the other way round; or it
            is of Keras 3, and the encoder of tf_keras.
        """
        from official.xlnet.modeling.ops import keras_files

        keras_files.require_no_keras_3(is_of_keras_3=isinstance(store, dict) and not store)
        file_has_adapters = keras_files.has_group(store, "lora")
        keras_files.require_same_adapters(self.lora is not None, file_has_adapters)
        super().load_own_variables(store)

    def __repr__(self) -> str:
        model = self.model
        return (
            f"{type(self).__name__}({model.num_layers} layers of width {model.d_model}, vocabulary "
            f"of {model.vocab_size:,}, {model.num_parameters / 1e6:.1f} M parameters)"
        )

    @property
    def layers(self) -> list[Layer]:
        """The parts of the encoder, which `summary(expand_nested=True)` of a model lists."""
        return list(self._flatten_layers(include_self=False, recursive=False))

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """Returns a part of the encoder, as `get_layer` of a Keras model does.

        Args:
          name: name of the part, e.g. `layer_0` for the first block.
          index: index in `layers`, in the place of a name.

        Raises:
          ConfigError: there is no such part.
        """
        layers = self.layers
        if name is None and index is not None and -len(layers) <= index < len(layers):
            return layers[index]
        by_name = {layer.name: layer for layer in layers}
        require_config(name in by_name, "get_layer", f"one of {list(by_name)}", name or index)
        return by_name[name or ""]

    def functional(self, inputs: Sequence[str] = ("token_ids",)) -> keras.Model:
        """A functional Keras model of the encoder; see `XLNetEncoder.functional`.

        Raises:
          ConfigError: the network has none.
        """
        raise ConfigError(
            f"functional: expected an XLNetEncoder, got {type(self).__name__}: "
            "`return_hidden_states` of a call returns the vectors before each block"
        )

    def __dir__(self):
        # Files of Keras name the parts by the attributes that are listed here.
        return [name for name in super().__dir__() if name != "layers"]

    @property
    def only_pretrained(self) -> list[tf.Variable]:
        """Variables that only pre-training reads."""
        return []

    def __call__(self, inputs, *args, **kwargs):
        inputs = rows_as_tensor(inputs)
        if is_symbolic(by_name(inputs)["token_ids"]):
            from official.xlnet.modeling.ops.symbolic_tensors import integer_ids

            token_ids = integer_ids(by_name(inputs)["token_ids"])
            require_integers(token_ids)
            inputs = {**inputs, "token_ids": token_ids} if isinstance(inputs, dict) else token_ids
        outputs = super().__call__(inputs, *args, **kwargs)
        content = outputs["content"] if isinstance(outputs, dict) else None
        if is_symbolic(content):
            from official.xlnet.modeling.ops.symbolic_tensors import set_symbolic_mask

            named = by_name(inputs)
            is_padding = named.get("is_padding")
            if is_padding is not None or not predicts_tokens(named):
                num_rows = kwargs.get("num_content")
                set_symbolic_mask(content, named["token_ids"], is_padding, num_rows)
        return outputs

    # tf_keras keeps the mask that `call` sets.
    _compute_output_and_mask_jointly = True

    def mark_padding(self, outputs: dict[str, tf.Tensor], is_padding_BT: tf.Tensor) -> None:
        """Sets the Keras mask of `content`, which later layers and losses leave padding out by."""
        content_BTD = outputs["content"]
        batch_size, num_rows, _ = sizes(content_BTD)
        first_row = sizes(is_padding_BT)[1] - num_rows
        is_real_BT = ~tf.cast(is_padding_BT, tf.bool)[:, first_row:]
        content_BTD._keras_mask = tf.broadcast_to(is_real_BT, [batch_size, num_rows])

    @classmethod
    def from_config(cls, config):
        """As in Keras; raises `ConfigError` for one of Keras 3 if this is of tf_keras."""
        from official.xlnet.modeling.ops import keras_files

        keras_files.require_no_keras_3(keras_files.is_config_of_keras_3(config))
        return super().from_config(config)

    def get_config(self):
        return {
            **super().get_config(),
            "config": self.config.as_dict(),
            "reuse_len": self.reuse_len,
            "mem_len": self.mem_len,
            **self.lora_config(),
        }


def register_network(name: str) -> Callable[[type[Encoder]], type[Encoder]]:
    """Decorator that registers a subclass of `Encoder`.

    Args:
      name: value of `model.network` that selects it.

    Raises:
      ConfigError: a network is already registered under the name.

    Example:
      >>> @register_network("mine")
      ... class MyEncoder(Encoder):
      ...     def call(self, inputs, training=None, **wanted): ...
    """
    return NETWORKS.register(name)
