"""A fine-tuned model on examples: predictions in order, and metrics where there are labels.

`predict_examples` and `Ensemble`, whose weights stay, run the inference network
(`TaskNetwork`), and so does the last evaluation of fine-tuning, on one device. Evaluation during
fine-tuning runs the Keras layers: the weights have changed since the last time, and to pack them
and to make new graphs would take longer than many a dev set. A property test holds the two equal
up to rounding, which may exchange neighbors of a ranking.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from official.xlnet.checkpoints.any_format import load_config, load_tokenizer
from official.xlnet.checkpoints.restoring import restore
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import Example
from official.xlnet.errors import DataError, require_config, require_data
from official.xlnet.inference.network.inference_encoder import finite
from official.xlnet.inference.network.length_buckets import default_lengths
from official.xlnet.inference.network.task_network import TaskNetwork
from official.xlnet.modeling.models.xlnet_task_model import (
    Batch,
    XLNetTaskModel,
    bucket_lengths,
)
from official.xlnet.runtime.host import host_state_kept
from official.xlnet.tasks.batching import Unit, batches_of_equal, bucket, collate
from official.xlnet.tasks.task import Prediction, Task, metrics_of

Forward = Callable[[Batch], Batch]
_CHUNK_BATCHES = 32  # Batches whose examples are sorted by length together.


def task_of(model_dir: str) -> Task:
    """The task of a fine-tuned model directory, without the network.

    Raises:
      ConfigError, DataError: the directory holds no fine-tuned model.
    """
    config = load_config(model_dir)
    require_config(bool(config.task.name), model_dir, "a fine-tuned model", "one without a task")
    return TASKS[config.task.name](config, load_tokenizer(model_dir))


@host_state_kept()
def load_task(model_dir: str) -> tuple[XLNetTaskModel, Task]:
    """The model of a fine-tuned model directory, and its task.

    Raises:
      ConfigError, DataError: the directory holds no fine-tuned model.
    """
    task = task_of(model_dir)
    model = XLNetTaskModel(task.config)
    restore(model_dir, encoder=model.encoder, head=model.head)
    return model, task


def packed_forward(model: XLNetTaskModel) -> Forward:
    """Creates a `TaskNetwork` with the model's current weights, and a graph for each length.

    It raises `DataError` where an output is NaN or infinite.
    """
    network = TaskNetwork(model, tuple(unit_lengths(model.config)))
    forward = tf.function(network.forward, autograph=False)
    return lambda batch: finite(forward(batch))


def _layers(model: XLNetTaskModel) -> Forward:
    """The model itself at inference; a graph for each length, kept with the model.

    The replicas of its distribution strategy share the units of a batch, and all workers get the
    outputs for all of them, so that they decide alike.
    """
    if not hasattr(model, "_inference"):
        strategy = model.distribute_strategy

        def infer(batch):
            replica = tf.distribute.get_replica_context()
            outputs = model(_rows_of_replica(batch, replica), training=False)
            return replica.all_gather(outputs, axis=0)

        graph = tf.function(
            lambda batch: strategy.experimental_local_results(strategy.run(infer, (batch,)))[0],
            autograph=False,
        )

        def forward(batch):
            with strategy.scope():  # The scope of `fit`; otherwise both would trace a graph.
                return graph(batch)

        model._inference = forward
    return model._inference


def _rows_of_replica(batch: Batch, replica: tf.distribute.ReplicaContext) -> Batch:
    """An equal share of the units of a batch for each replica."""
    num_units = batch["weight"].shape[0] // replica.num_replicas_in_sync
    replica_number = replica.replica_id_in_sync_group
    shares = {name: tf.reshape(x, [-1, num_units, *x.shape[1:]]) for name, x in batch.items()}
    return {name: x[replica_number] for name, x in shares.items()}


def evaluate_examples(
    model: XLNetTaskModel,
    task: Task,
    examples: Sequence[Example],
    forward: Forward | None = None,
) -> tuple[list[Prediction], dict[str, Any]]:
    """Predictions for examples with labels, and their metrics, `loss` included.

    The loss is the training loss, unless the task evaluates its own.

    Args:
      model: the model.
      task: its task.
      examples: the examples.
      forward: a `packed_forward` of the model. Default: the model itself, which may be in training:
        its graphs are kept and read the current weights.
    """
    loss_sum = num_items = 0.0

    def add_loss(batch, outputs):
        nonlocal loss_sum, num_items
        is_real_U = tf.cast(batch["weight"] > 0, tf.float32)
        loss_sum += float(tf.reduce_sum(model.head.loss(outputs, batch) * is_real_U))
        num_items += float(tf.reduce_sum(model.head.num_items(batch) * is_real_U))

    forward = forward or _layers(model)
    predictions = list(predict_examples(model, task, examples, forward, add_loss))
    metrics = metrics_of(task, examples, predictions)
    if not num_items and "loss" not in metrics:
        raise DataError("expected examples to evaluate with, got none whose labels the model reads")
    return predictions, {"loss": loss_sum / max(num_items, 1.0)} | metrics


def predict_examples(
    model: XLNetTaskModel,
    task: Task,
    examples: Iterable[Example],
    forward: Forward | None = None,
    observe: Callable[[Batch, Batch], None] | None = None,
) -> Iterator[Prediction]:
    """Yields a prediction for each example, in order, however many there are.

    Args:
      model: the model; its weights are copied when the first prediction is asked for.
      task: its task.
      examples: examples; as many are held as make up a few batches.
      forward: a `packed_forward` of the model, to copy weights and trace graphs only once.
      observe: called with every batch and its outputs.
    """
    forward = forward or packed_forward(model)
    if observe is None:  # A batch has labels of all its examples or of none.
        examples = (
            dataclasses.replace(x, **dict[str, Any]({x.label_field: None})) for x in examples
        )
    batch_size = task.config.training.batch_size
    lengths = prediction_lengths(task.config)
    examples = iter(examples)
    while chunk := list(itertools.islice(examples, rows_together(task))):
        of_examples = list(task.units(chunk))
        units = list(itertools.chain(*of_examples))
        outputs: list[Any] = [None] * len(units)
        for indices in _batches_by_length(units, batch_size):
            members = [units[i] for i in indices]
            longest = max(unit.length for unit in members)
            arrays = collate(members, lengths[bucket(longest, lengths)], batch_size)
            batch = {name: tf.constant(x) for name, x in arrays.items()}
            batch_outputs = forward(batch)
            if observe is not None:
                observe(batch, batch_outputs)
            rows = {name: value.numpy() for name, value in batch_outputs.items()}
            for row, i in enumerate(indices):
                of_head = {name: value[row] for name, value in rows.items()}
                outputs[i] = of_head | units[i].places
        in_order = iter(outputs)
        for example, its_units in zip(chunk, of_examples, strict=True):
            yield task.predict(example, list(itertools.islice(in_order, len(its_units))))


def _batches_by_length(units: Sequence[Unit], batch_size: int) -> Iterator[list[int]]:
    """Yields indices of units of the same head in batches of about equal length."""
    ascending = sorted(range(len(units)), key=lambda i: units[i].length)
    for batch in batches_of_equal([units[i].head_index for i in ascending], batch_size):
        yield [ascending[place] for place in batch]


def rows_together(task: Task) -> int:
    """Number of examples that are sorted by length and predicted together."""
    return task.config.training.batch_size * _CHUNK_BATCHES


def require_labels(examples: Sequence[Example]) -> None:
    """Raises a DataError that names the first example without a label."""
    for example in examples:
        is_labelled = getattr(example, "is_labelled", True)
        require_data(is_labelled, example.id, "a label to evaluate with", "none")


def unit_lengths(config: XLNetConfig) -> list[int]:
    """Returns the padded lengths of sequences; a single one if memory needs full segments.

    A training run replaces them by at most as many lengths that fit its data.
    """
    task = config.task
    return bucket_lengths(task.max_length, 1 if task.long_texts == "memory" else task.num_buckets)


def prediction_lengths(config: XLNetConfig) -> list[int]:
    """Returns the padded lengths of sequences in prediction: 16, 24, 32, 48, 64, ….

    These are powers of two and the lengths half-way between them: each is a graph. It is
    `task.max_length` alone with one bucket, and if memory needs full segments.
    """
    task = config.task
    if len(unit_lengths(config)) == 1:
        return [task.max_length]
    lengths = default_lengths(task.max_length, task.shortest_input)
    half_way = [(short + long) // 2 for short, long in itertools.pairwise(lengths)]
    return sorted([*lengths, *half_way])
