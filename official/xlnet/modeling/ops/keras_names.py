"""The names that Keras' files call our classes by, before their modules are imported.

`keras.models.load_model` looks classes up by name. Ours register themselves when they are first
used; until then, `Deferred` objects stand for them, which cost nothing.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import PathFinder
from typing import Any

from official.xlnet.configs.registry import Registry

CLASSES = Registry[type](
    "class of a Keras file",
    AdamW="training.optimization",
    AuxiliaryObjectives="modeling.objectives.auxiliary",
    EncoderBlock="modeling.networks.functional_view",
    EncoderContent="modeling.networks.functional_view",
    EncoderMemory="modeling.networks.functional_view",
    EncoderStart="modeling.networks.functional_view",
    FeedForward="modeling.layers.feed_forward",
    GradientNorm="modeling.models.trainable_model",
    LAMB="training.optimization",
    LMHead="modeling.layers.lm_head",
    LossScaleOptimizer="modeling.ops.keras_3",
    Mean="modeling.models.trainable_model",
    Muon="training.optimization",
    NumTargets="modeling.models.trainable_model",
    Preprocessor="tasks.preprocessor",
    RelativeBiases="modeling.layers.relative_attention",
    RelativePositionEncoding="modeling.layers.relative_position",
    RelativeSegmentEncoding="modeling.layers.relative_segment",
    ResidualNorm="modeling.layers.xlnet_block",
    PaddingMask="modeling.ops.symbolic_tensors",
    StackedDepth="modeling.depth.stacked",
    TwoStreamAttentionMask="modeling.layers.two_stream_mask",
    TwoStreamRelativeAttention="modeling.layers.relative_attention",
    WarmupThenDecay="training.schedules",
    XLNetBlock="modeling.layers.xlnet_block",
    XLNetClassifier="modeling.models.xlnet_classifier",
    XLNetEncoder="modeling.networks.xlnet_encoder",
    XLNetPretrainer="modeling.models.xlnet_pretrainer",
    XLNetTaskModel="modeling.models.xlnet_task_model",
)
_KERASES = {"keras", "tf_keras"}


class Deferred:
    """Stands for a class; its module is imported when an attribute is first asked for."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        module = importlib.import_module(f"official.xlnet.{CLASSES.modules[self._name]}")
        return getattr(getattr(module, self._name), attribute)


class _Finder:
    """Waits in `sys.meta_path` for the import of a Keras."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _KERASES or name in sys.modules:
            return None
        spec = PathFinder.find_spec(name, path, target)
        loader: Any = None if spec is None else spec.loader
        if loader is not None:
            execute = loader.exec_module

            def execute_and_register(module):
                del loader.exec_module
                try:
                    execute(module)
                except (ImportError, ValueError):  # The backend may not be installed.
                    from official.xlnet.modeling.ops.keras_requirements import require_backend

                    require_backend(os.environ.get("KERAS_BACKEND", "tensorflow"))
                    raise
                _register(module)

            loader.exec_module = execute_and_register
        return spec


def register_names() -> None:
    """Tells each Keras the names: now, or when it is imported."""
    for name in _KERASES & sys.modules.keys():
        _register(sys.modules[name])
    sys.meta_path.insert(0, _Finder())


def _register(keras: Any) -> None:
    objects = keras.saving.get_custom_objects()
    for name in CLASSES.modules:
        objects.setdefault(f"xlnet>{name}", Deferred(name))
    # Files in the older formats name a schedule without its package.
    objects.setdefault("WarmupThenDecay", Deferred("WarmupThenDecay"))
