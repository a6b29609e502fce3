"""The experiment `xlnet/classification` of the Model Garden: fine-tuning on sentences or pairs."""

from __future__ import annotations

import dataclasses
import functools

import tensorflow as tf

from data_prep.tasks.task_data import read_task
from official.core import config_definitions as cfg
from official.core import exp_factory, task_factory
from official.modeling import optimization
from official.xlnet.checkpoints.any_format import load_tokenizer
from official.xlnet.checkpoints.model_directory import check_compatible
from official.xlnet.checkpoints.restoring import restore
from official.xlnet.configs.registry import TASKS
from official.xlnet.configs.validation import require
from official.xlnet.inference.task_prediction import unit_lengths
from official.xlnet.jobs.finetuning import task_configuration
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.projects.garden.model_task import ModelTask, ModelTaskConfig, adamw
from official.xlnet.tasks.batching import TrainingBatches
from official.xlnet.tasks.task import Task

_TASK = "classification"


@dataclasses.dataclass
class ClassificationConfig(ModelTaskConfig):
    """Configuration of the task.

    Attributes:
      init_checkpoint: the model to start from, in any format.
      recipe: YAML file of a recipe for classification, e.g. `configs/sst2.yaml`; optional. Its
        optimizer settings are not read: those are `trainer.optimizer_config`.
      overrides: `key=value` strings, e.g. `task.max_length=64`.
      train_data: `input_path`, a table with labels, and `global_batch_size`.
      validation_data: the same, of the texts to evaluate on.
    """


@task_factory.register_task_cls(ClassificationConfig)
class ClassificationTask(ModelTask):
    """Classification of texts, or of pairs of them, by a model that has been pre-trained.

    Inputs, network and loss are the same as with `xlnet finetune --task=classification`. Validation
    reports the loss and the accuracy of each text once, whatever the batch size.
    """

    def build_model(self) -> XLNetTaskModel:
        """Creates the model, with a head for the labels of the training data."""
        return XLNetTaskModel(self._task.config)

    def initialize(self, model: XLNetTaskModel) -> None:
        """Restores the encoder of `init_checkpoint`."""
        path = self.task_config.init_checkpoint
        check_compatible(model.config, path)
        restore(path, encoder=model.encoder)

    def build_inputs(
        self, params: cfg.DataConfig, input_context: tf.distribute.InputContext | None = None
    ) -> tf.data.Dataset:
        """Batches of a table: without end and shuffled for training, else each text once."""
        task = self._task
        examples, _ = read_task(params.input_path, task.config.task)
        units = (
            task.training_units(examples)
            if params.is_training
            else [unit for of_example in task.units(examples) for unit in of_example]
        )
        lengths = unit_lengths(task.config)
        batches = TrainingBatches(
            units, lengths[-1], lengths, params.global_batch_size, task.config.training.seed
        )
        dataset = batches.dataset(0, input_context)
        if params.is_training:
            return dataset
        context = input_context or tf.distribute.InputContext()
        replicas = context.num_replicas_in_sync // context.num_input_pipelines
        return dataset.take(batches.steps_per_epoch * replicas)

    def build_metrics(self, training: bool = True) -> list[keras.metrics.Metric]:
        """Accuracy, of validation."""
        return [] if training else [keras.metrics.SparseCategoricalAccuracy("accuracy")]

    def validation_step(
        self, inputs: dict[str, tf.Tensor], model: XLNetTaskModel, metrics=None
    ) -> dict[str, tf.Tensor]:
        """Losses of the texts of a batch, without those that only fill it up."""
        outputs = model(inputs, training=False)
        is_real_U = inputs["weight"] > 0
        losses = tf.boolean_mask(model.head.loss(outputs, inputs), is_real_U)
        model.loss_metric.update_state(losses)
        for metric in metrics or []:  # Of the model, and of `build_metrics`.
            if isinstance(metric, keras.metrics.SparseCategoricalAccuracy):
                metric.update_state(inputs["label"], outputs["logits"], is_real_U)
        return {self.loss: losses}

    @functools.cached_property
    def _task(self) -> Task:
        """The task, with the labels of the training data."""
        config = self.task_config
        require(bool(config.init_checkpoint), "task.init_checkpoint", "a model", "")
        result = task_configuration(
            _TASK, config.recipe or None, config.overrides, config.init_checkpoint
        )
        task_class = TASKS[_TASK]
        task_class.complete_settings(
            result, read_task(config.train_data.input_path, result.task)[0]
        )
        return task_class(result, load_tokenizer(config.init_checkpoint))


@exp_factory.register_config_factory("xlnet/classification")
def xlnet_classification() -> cfg.ExperimentConfig:
    """Creates the configuration: AdamW with warmup and linear decay, as in the paper."""
    return cfg.ExperimentConfig(
        task=ClassificationConfig(),
        trainer=cfg.TrainerConfig(
            train_steps=1000,
            optimizer_config=optimization.OptimizationConfig(adamw(3e-5, 1000, 100)),
        ),
        restrictions=["task.train_data.is_training != None"],
    )
