"""Loading the pre-training model of a model directory."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.checkpoints.model_directory import check_compatible
from official.xlnet.checkpoints.restoring import restore
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.files.arguments import AnyPath
from official.xlnet.files.public import public
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.runtime.host import host_state_kept


@public()
@host_state_kept()
def load_pretrainer(
    model_dir: AnyPath, config: XLNetConfig | None = None, **kwargs
) -> XLNetPretrainer:
    """Loads the pre-training model of a model directory with its trained weights.

    The recurrent memory is not restored; it starts empty. Auxiliary objectives that the saved
    model has not learned start anew.

    Args:
      model_dir: the model directory.
      config: a configuration with the same architecture; by default, the directory's.
      **kwargs: further arguments of `XLNetPretrainer`.

    Returns:
      The pre-training model.

    Raises:
      ConfigError: the configuration is missing or invalid, or the architectures differ.
      DataError: the checkpoint is missing or damaged.
    """
    saved = load_config(model_dir)
    config = config or saved
    check_compatible(config, model_dir)
    model = XLNetPretrainer(config, **kwargs)
    parts = {"encoder": model.encoder, "lm_head": model.lm_head}
    learned = {stage.name for stage in saved.objective.stages()}
    kept = {name: part for name, part in model.auxiliary.parts.items() if name in learned}
    parts |= {name: kept.pop(name) for name in model.auxiliary.apart if name in kept}
    if kept:
        parts["auxiliary"] = tf.train.Checkpoint(**kept)
    restore(model_dir, **parts)
    return model
