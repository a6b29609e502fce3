"""`finetune`: a model and labelled examples in, a model of the task out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from official.xlnet.api.arguments import Model, Override, TaskName
from official.xlnet.api.verbs import TRAIN, register_verb
from official.xlnet.configs.choices import CLUSTER_TIMEOUT
from official.xlnet.configs.registry import DATASETS, STRATEGIES, TASKS
from official.xlnet.data.lost_rows import MAX_LOST, MaxLost
from official.xlnet.files.arguments import Path, RunDirectory, Strategy
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOfRegistry, Range
from official.xlnet.runtime.progress import loading_tensorflow


def _known_tasks() -> str:
    """Returns the names that `task` takes."""
    task_types = f"Task types: {', '.join(TASKS.names())}."
    data_sets = f"Data sets: {', '.join(DATASETS.names())}."
    return "\n".join([*textwrap.wrap(task_types, 95), *textwrap.wrap(data_sets, 95)])


@register_verb("finetune", group=TRAIN, details=_known_tasks)
@public(model="init_from", overrides="set")
def finetune(
    init_from: Model | None,
    train: Path | Iterable[Any],
    dev: Path | Iterable[Any] | None,
    output: RunDirectory,
    task: TaskName | None = None,
    config: Path | None = None,
    set: Sequence[Override] = (),
    vocab: Path | None = None,
    strategy: Annotated[str, OneOfRegistry(STRATEGIES)] | Strategy = "one_device",
    cpu_devices: Annotated[int, Range(1, 256)] = 1,
    extra_train: Mapping[Path, float] | None = None,
    max_lost: MaxLost = MAX_LOST,
    new_head: bool = False,
    cluster_timeout: Annotated[float, Range(1, 1_000_000)] = CLUSTER_TIMEOUT,
) -> dict[str, Any]:
    r"""Fine-tunes a model on a task.

    The task is a task type or a supported data set, which `xlnet finetune --help` lists. A table
    needs a column of labels; all other columns except ids are texts unless the setting
    task.text_columns selects some.

    To resume an interrupted run, run the same command again. Learning rate, batch size and length
    of the run are chosen automatically where neither config nor set gives them. The best model is
    kept. In Python, the random state of Python and NumPy is restored; TensorFlow and Keras stay
    seeded with training.seed.

    Args:
      init_from: model to start from: a model directory, HF folder or TF1 release; default: random
        weights, with the vocabulary of vocab.
      train: training data: a file or folder, NAME=FILE,NAME=FILE for a task of several data sets;
        in Python also a table, or a list of `(text, label)` or `(text, text, label)` tuples, see
        `read_task`, and `{name: any of these}` for several data sets.
      dev: data to evaluate on and to select the best model by; or a share of the training data to
        hold out, e.g. 20%, stratified by class; default: 10%.
      output: model directory to create, or to resume from.
      task: task type or data set; default: that of config, or classification.
      config: YAML file with a recipe, or a model directory.
      set: configuration override `key=value`, e.g. task.epochs=3, see `XLNetConfig.load`; may be
        repeated.
      vocab: vocabulary, spiece.model or its directory, for training from random weights.
      strategy: distribution strategy; see `prepare_devices`. A run may be resumed with another
        one.
      cpu_devices: number of virtual CPU devices, for `mirrored` without GPUs.
      extra_train: further training data for question answering, FILE or FILE=WEIGHT with its
        weight in the loss; may be repeated. In Python, {path: weight}.
      max_lost: maximum fraction of bad rows to skip; above it, the command fails.
      new_head: start with a new head; default: the head of a fine-tuned init_from, if it fits.
      cluster_timeout: longest wait for the other workers of a run, in seconds.

    Returns:
      The metrics on `dev`, counts of truncated or skipped examples, and `baselines`, see
      `add_baselines`; None for a task without.

    Raises:
      ConfigError: the configuration is invalid or does not match the data or the model.
      DataError: the data or the model cannot be used, more than `max_lost` of the rows of a file
        are unusable, or the loss is not finite.
      TypeError: an example is neither a tuple nor an example.

    Example:
      $ xlnet finetune --task=sst2 --train=train.tsv --dev=dev.tsv --init_from=runs/model \
          --output=runs/sst2

      >>> train = [("A fine film.", "good"), ("Dull.", "bad")] * 8
      >>> finetune("runs/base", train, train, "runs/task", set=["task.epochs=3"])["accuracy"]
      1.0
    """
    from official.xlnet.checkpoints.any_format import load_config
    from official.xlnet.configs.finetuning_defaults import finetuning_configuration

    settings = finetuning_configuration(task, config, set, init_from, load_config)
    with loading_tensorflow():
        from official.xlnet.jobs.finetuning import finish_finetuning
        from official.xlnet.jobs.finetuning_inputs import FineTuningOptions, read_inputs
        from official.xlnet.runtime.host import host_state_kept
        from official.xlnet.training.finetuning import run_finetuning
        from official.xlnet.training.run_end import end_set_aside
    options = FineTuningOptions(
        init_from=init_from,
        recipe=config,
        overrides=set,
        vocab=vocab,
        strategy=strategy,
        cpu_devices=cpu_devices,
        extra_train=extra_train,
        max_lost=max_lost,
        new_head=new_head,
        cluster_timeout=cluster_timeout,
    )
    with host_state_kept(), end_set_aside(output):
        inputs = read_inputs(settings, train, dev, output, options)
        metrics = run_finetuning(inputs.config, inputs.train, inputs.dev, output, inputs.start)
        finish_finetuning(output, metrics, inputs)
    return metrics | inputs.counts
