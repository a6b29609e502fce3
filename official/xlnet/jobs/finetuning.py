"""Fine-tuning from a path of a model and plain examples, with the baselines of its task."""

from __future__ import annotations

import dataclasses
import numbers
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import tensorflow as tf
from absl import logging

from data_prep.tasks.task_data import read_task
from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.configs.choices import CLUSTER_TIMEOUT, STRATEGIES
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.finetuning_defaults import (
    complete_settings,
    finetuning_configuration,
    given_settings,
    keep_settings,
)
from official.xlnet.configs.registry import BASELINES, SEVERAL_RUNS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.validation import POSITIVE, require, require_number
from official.xlnet.data.examples import Example
from official.xlnet.data.lost_rows import MAX_LOST, MaxLost
from official.xlnet.errors import ConfigError
from official.xlnet.files.arguments import Path, RunDirectory
from official.xlnet.files.json_files import read_json, write_json
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf, Range
from official.xlnet.inference.task_prediction import task_of
from official.xlnet.jobs.held_out import held_out
from official.xlnet.runtime.distribution import is_chief, prepare_devices
from official.xlnet.runtime.host import host_state_kept
from official.xlnet.runtime.metric_text import metric_text
from official.xlnet.runtime.pages import TaskRun, write_pages
from official.xlnet.runtime.progress import Progress
from official.xlnet.tasks.reports import METRICS_FILE
from official.xlnet.tasks.task import Task, comparable
from official.xlnet.tokenization.tokenizer import num_pieces
from official.xlnet.training.continued_head import resumes_head
from official.xlnet.training.finetuning import Start, run_finetuning, saved_configuration
from official.xlnet.training.finetuning_loop import metric_of

Rows = str | Iterable[Any]
_SHARE = re.compile(r"([0-9]{1,2}(?:\.[0-9]+)?)%")


@public(model="init_from", overrides="set", num_runs="runs")
@host_state_kept()
def finetune(
    init_from: Path | None,
    train: Path | Iterable[Any],
    dev: Path | Iterable[Any] | None,
    output: RunDirectory,
    task: str | None = None,
    config: Path | None = None,
    set: Sequence[str] = (),
    vocab: Path | None = None,
    strategy: Annotated[str, OneOf(STRATEGIES)] | tf.distribute.Strategy = "one_device",
    cpu_devices: Annotated[int, Range(1, 256)] = 1,
    runs: Annotated[int, Range(1, 10_000)] = 1,
    extra_train: Mapping[Path, float] | None = None,
    search: Annotated[int, Range(0, 1000)] = 0,
    max_lost: MaxLost = MAX_LOST,
    new_head: bool = False,
    folds: Annotated[int, Range(0, 1000)] = 0,
    cluster_timeout: Annotated[float, Range(1, 1_000_000)] = CLUSTER_TIMEOUT,
) -> dict[str, Any]:
    r"""Fine-tunes a model on a task.

    The task is a task type (classification, multi_label, regression, multiple_choice,
    question_answering, question_answering_simple, token_classification, token_regression, ranking,
    multitask) or a supported data set (GLUE: cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli;
    imdb, yelp2, yelp5, ag_news, dbpedia, amazon2, amazon5; squad, race, swag, conll2003,
    qnli_ranking, wnli_ranking). A table needs a column of labels; all other columns except ids are
    texts unless the setting task.text_columns selects some.

    To resume an interrupted run, run the same command again. Learning rate, batch size and length
    of the run are chosen automatically where neither config nor set gives them. The best model is
    kept. In Python, the random state of Python and NumPy is restored; TensorFlow and Keras stay
    seeded with training.seed.

    Args:
      init_from: model to start from: a model directory, HF folder or TF1 release; default: random
        weights, with the vocabulary of vocab.
      train: training data: a file or folder, NAME=FILE,NAME=FILE for multitask; in Python also a
        table, or a list of `(text, label)` or `(text, text, label)` tuples, see `read_task`, and
        `{name: any of these}` for multitask.
      dev: data to evaluate on and to select the best model by; or a share of the training data to
        hold out, e.g. 20%, stratified by class; default: 10%.
      output: model directory to create, or to resume from.
      task: task type or data set; default: that of config, or classification.
      config: YAML file with a recipe, or a model directory.
      set: configuration override `key=value`, e.g. task.epochs=3, see `XLNetConfig.load`; may be
        repeated.
      vocab: vocabulary, spiece.model, for training from random weights.
      strategy: distribution strategy; see `prepare_devices`. A run may be resumed with another
        one.
      cpu_devices: number of virtual CPU devices, for `mirrored` without GPUs.
      runs: number of runs with different random seeds; the best model is kept, see
        `finetune_repeatedly`.
      extra_train: further training data for question answering, FILE or FILE=WEIGHT with its
        weight in the loss; may be repeated. In Python, {path: weight}.
      search: number of learning rates and run lengths to compare by successive halving; the best
        model is kept, see `search_settings`; 0: no search.
      max_lost: maximum fraction of bad rows to skip; above it, the command fails.
      new_head: start with a new head; default: the head of a fine-tuned init_from, if it fits.
      folds: number of folds of a cross-validation over train, without dev, see `cross_validate`;
        0: none.
      cluster_timeout: longest wait for the other workers of `multi_worker`, in seconds.

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
    several = {"search": search, "folds": folds, "runs": runs if runs > 1 else 0}
    if sum(map(bool, several.values())) > 1 or folds == 1:
        raise ConfigError(
            "expected one of search, folds (2 or more) and runs, got "
            f"{', '.join(f'{name}={value}' for name, value in several.items() if value)}"
        )
    settings = task_configuration(task, config, set, init_from)
    if vocab and not init_from:
        settings.model.fit_vocabulary(num_pieces(vocab), vocab)
    # First of all, as some readers use TensorFlow.
    distribution = prepare_devices(settings.training, strategy, cpu_devices, cluster_timeout)
    extra = list(_extra_examples(extra_train or {}, settings.task, max_lost))
    train_examples, train_counts = _examples(train, settings.task, "train", max_lost)
    label_type = settings.task.label_type  # The type in train; dev may have its labels as strings.
    train_examples, dev_examples, dev_counts = _split(
        train_examples, dev, bool(folds), settings, max_lost
    )
    settings.task.label_type = label_type
    for examples, counts in extra:
        (dev_examples if folds else train_examples).extend(examples)
        train_counts |= counts
    keys, with_head = given_settings(config, set), False
    if init_from and not new_head:
        with_head = resumes_head(settings, keys, init_from, train_examples)
    saved = saved_configuration(output)
    if saved is not None and saved.task.name == settings.task.name:
        keep_settings(settings, keys, saved)
    else:
        complete_settings(settings, keys, len(train_examples), distribution.num_replicas_in_sync)
    scales_warmup = "num_steps" in keys or "warmup_steps" not in keys
    start = Start(distribution, init_from, with_head, vocab, max_lost, scales_warmup)
    data = train_examples, dev_examples
    name = next((name for name, number in several.items() if number), None)
    if name:
        metrics = SEVERAL_RUNS[name](settings, *data, output, several[name], start)
    else:
        metrics = run_finetuning(settings, *data, output, start)
    if name != "folds" and is_chief(distribution):
        metrics["baselines"] = add_baselines(output, metrics, *data)
        write_pages("task", output, lambda: _ended_run(output, metrics, dev_examples))
    return metrics | train_counts | dev_counts


def _ended_run(output: str, metrics: Mapping[str, Any], dev: Sequence[Example]) -> TaskRun:
    task = task_of(output)
    return TaskRun(
        directory=output,
        task=task,
        metric=metric_of(task, dict(metrics)),
        examples=dev,
        models=[output],
    )


def _split(
    train: list[Example], dev: Rows | None, has_folds: bool, settings: XLNetConfig, max_lost: float
) -> tuple[list[Example], list[Example], dict[str, int]]:
    """The training and dev examples, and counts of skipped rows of dev; see `finetune`."""
    column = settings.task.group_column
    has_groups = any(getattr(example, "group", "") for example in train)
    expected = "a column of a training table with texts or words"
    require(not column or has_groups, "task.group_column", expected, column)
    if has_folds:
        require(dev is None, "dev", "none with folds, which are parts of train", dev)
        return train, [], {}
    dev = "10%" if dev is None else dev
    share = _SHARE.fullmatch(dev) if isinstance(dev, str) else None
    if share:
        return *held_out(train, settings.training.seed, float(share[1]) / 100), {}
    return train, *_examples(dev, settings.task, "dev", max_lost)


def task_configuration(
    task: str | None, path: str | None, overrides: Sequence[str], init_from: str | None
) -> XLNetConfig:
    """Builds the configuration of a fine-tuning run; see `finetuning_configuration`."""
    return finetuning_configuration(task, path, overrides, init_from, load_config)


def _extra_examples(
    files: Mapping[str, float], task: TaskConfig, max_lost: float
) -> Iterator[tuple[list[Example], dict[str, int]]]:
    """Yields the examples of each file with their weights, and its counts of skipped rows."""
    expected = "a task whose examples have weights (join the files of other tasks into one)"
    require(not files or task.weighs_examples, "extra_train", expected, task.name)
    for path, weight in files.items():
        require_number(f"extra_train: {path}", weight, POSITIVE, numbers.Real)
        examples, counts = _examples(path, task, path, max_lost)
        weighted: list[Any] = [*examples]
        yield [dataclasses.replace(example, weight=weight) for example in weighted], counts


def _examples(
    rows: Rows, task: TaskConfig, split: str, max_lost: float
) -> tuple[list[Example], dict[str, int]]:
    """Returns examples, and counts of skipped rows with the name of the split in front."""
    examples, counts = read_task(rows, task, max_lost, split)
    return examples, {f"{split}_{name}": number for name, number in counts.items()}


def add_baselines(
    model_dir: str, metrics: Mapping[str, Any], train: Sequence[Example], dev: Sequence[Example]
) -> dict[str, Any] | None:
    """Evaluates the baselines of a model's task, and shows them with its result.

    They are added to `metrics.json` as `baselines`. No error here is raised, as the model is
    complete without them; it is logged as a warning.

    Args:
      model_dir: the directory of the fine-tuned model.
      metrics: its metrics on `dev`.
      train: the training examples.
      dev: the examples that the model was evaluated on.

    Returns:
      Those of `Task.baselines`, or the first result of `BASELINES`; None for a task that has none,
      or after an error.
    """
    try:
        task = task_of(model_dir)
        results = (BASELINES[name](task, train, dev) for name in BASELINES.names())
        baselines = task.baselines(dev) or next(filter(None, results), None)
        Progress(sys.stderr).log_line(comparison(task, metrics, baselines))
        path = os.path.join(model_dir, METRICS_FILE)
        write_json(path, {**read_json(path), "baselines": baselines})
    except Exception as error:
        logging.warning("no baselines: %s: %s", type(error).__name__, error)
        return None
    return baselines


def comparison(task: Task, metrics: Mapping[str, Any], baselines: dict[str, Any] | None) -> str:
    """Returns a line with the main metric of the model and of its baselines."""
    name = metric_of(task, dict(metrics))

    def text(of: Mapping[str, Any]) -> str:
        return metric_text(of[name], of.get(f"{name}_is_over"))

    line = f"{name}{task.metric_note}: model {text(metrics)}"
    if baselines is None:
        return f"{line} (no bag of words to compare with in {task.config.task.name})"
    words = {
        "run": "run that it reranks",
        "bag_of_words": "bag of words",
        "majority": task.majority_name,
    }
    compared = {words[key]: baselines[key] for key in words if key in baselines}
    line += "".join(f", {which} {text(scores)}" for which, scores in compared.items())
    first, scores = next(iter(compared.items()))
    if round(comparable(name, metrics[name]), 4) < round(comparable(name, scores[name]), 4):
        line += f"; the model is behind the {first}"
    return line
