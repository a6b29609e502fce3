"""The experiment `xlnet/pretraining` of the Model Garden, for `official.core.train_lib`."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from official.core import config_definitions as cfg
from official.core import exp_factory, task_factory
from official.modeling import optimization
from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.checkpoints.model_directory import check_compatible
from official.xlnet.checkpoints.restoring import restore
from official.xlnet.configs.experiment import XLNetConfig, recipe_path
from official.xlnet.configs.validation import require
from official.xlnet.data.pretraining_dataset import pretraining_dataset
from official.xlnet.data.schema import Manifest
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.projects.garden.model_task import ModelTask, ModelTaskConfig, adamw


@dataclasses.dataclass
class PretrainingConfig(ModelTaskConfig):
    """Configuration of the task.

    Attributes:
      recipe: YAML file of a recipe, or a trained model in any format, for the network, the
        objective and how targets are drawn. Its optimizer settings are not read: those are
        `trainer.optimizer_config`.
      overrides: `key=value` strings that override the recipe, e.g. `model.mem_len=0`.
      init_checkpoint: a trained model in any format to start from.
      train_data: `input_path`, a data set of `xlnet prepare`, and `global_batch_size`.
      validation_data: the same; its held-out split is read.
    """


@task_factory.register_task_cls(PretrainingConfig)
class PretrainingTask(ModelTask):
    """Pre-training with the objective of a recipe.

    The loss is the same as of `XLNetPretrainer`, in nats per target. Memory is carried from batch
    to batch, and is part of checkpoints. A run that is resumed reads its data from the
    beginning; `xlnet pretrain` resumes exactly.
    """

    def build_model(self) -> XLNetPretrainer:
        """Creates the model, with room for a batch in its memory."""
        config = self._xlnet_config()
        model = XLNetPretrainer(config)
        model.make_evaluation_memory()
        return model

    def initialize(self, model: XLNetPretrainer) -> None:
        """Restores `init_checkpoint`, if there is one."""
        path = self.task_config.init_checkpoint
        if path:
            check_compatible(model.config, path)
            restore(path, encoder=model.encoder, lm_head=model.lm_head)

    def build_inputs(
        self, params: cfg.DataConfig, input_context: tf.distribute.InputContext | None = None
    ) -> tf.data.Dataset:
        """Opens the training or the held-out split of a data set."""
        return pretraining_dataset(
            params.input_path,
            params.global_batch_size,
            "train" if params.is_training else "heldout",
            self._xlnet_config(),
            input_context=input_context,
        )

    def validation_step(
        self, inputs: dict[str, tf.Tensor], model: XLNetPretrainer, metrics=None
    ) -> dict[str, tf.Tensor]:
        """Loss of a batch by `XLNetPretrainer.test_step`."""
        return model.test_step(inputs)

    def _xlnet_config(self) -> XLNetConfig:
        config = self.task_config
        require(bool(config.recipe), "task.recipe", "a YAML file or a model", "")
        sizes = [data.global_batch_size for data in (config.train_data, config.validation_data)]
        result = load_config(recipe_path(config.recipe), list(config.overrides))
        result.training.batch_size = max(*sizes, 1)  # Rows that the memory has room for.
        for data in (config.train_data, config.validation_data):
            if data.input_path:
                pieces = Manifest.load(data.input_path).vocab_size
                result.model.fit_vocabulary(pieces, data.input_path)
        result.check()
        return result


@exp_factory.register_config_factory("xlnet/pretraining")
def xlnet_pretraining() -> cfg.ExperimentConfig:
    """Creates the configuration: AdamW with warmup and linear decay, as in the paper."""
    return cfg.ExperimentConfig(
        task=PretrainingConfig(),
        trainer=cfg.TrainerConfig(
            train_steps=100_000,
            optimizer_config=optimization.OptimizationConfig(adamw(1e-4, 100_000, 1000)),
        ),
        restrictions=["task.train_data.is_training != None"],
    )
