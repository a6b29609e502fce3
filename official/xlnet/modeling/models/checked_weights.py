"""Loading of weights that refuses files of the other Keras, and adapters that a model lacks."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf


class CheckedWeights:
    """Mixin of models around an encoder; the encoder itself checks files in Keras' own formats."""

    encoder: Any

    def load_weights(self, filepath, *args, **kwargs):
        """As in Keras.

        Raises:
          ConfigError: weights in the TensorFlow format, of tf_keras, have adapters and the model
            has none, or the other way round.
        """
        prefix = os.fspath(filepath)
        if os.path.exists(f"{prefix}.index"):
            names = [name for name, _ in tf.train.list_variables(prefix)]
            file_has_adapters = any("/lora/" in name for name in names)
            from official.xlnet.modeling.ops.keras_files import require_same_adapters

            require_same_adapters(self.encoder.lora is not None, file_has_adapters)
        return super().load_weights(filepath, *args, **kwargs)  # type: ignore[misc]

    def load_own_variables(self, store):
        """As in Keras.

        Raises:
          ConfigError: the file is of Keras 3, and the model of tf_keras.
        """
        from official.xlnet.modeling.ops.keras_files import is_file_of_keras_3, require_no_keras_3

        require_no_keras_3(is_file_of_keras_3(store))
        super().load_own_variables(store)  # type: ignore[misc]
