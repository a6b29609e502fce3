"""`cross_validate`, `finetune_repeatedly` and `search_settings`: several fine-tuning runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from official.xlnet.api.arguments import Model, Override, TaskName
from official.xlnet.api.verbs import TRAIN, register_verb
from official.xlnet.configs.choices import CLUSTER_TIMEOUT
from official.xlnet.configs.registry import PUBLIC_NAMES, STRATEGIES
from official.xlnet.data.lost_rows import MAX_LOST, MaxLost
from official.xlnet.files.arguments import Path, RunDirectory, Strategy
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOfRegistry, Range
from official.xlnet.runtime.progress import loading_tensorflow


@PUBLIC_NAMES.register("cross_validate")
@register_verb(
    "cross_validate", group=TRAIN, former={"finetune.folds": 0}, counts={"folds": "folds"}
)
@public()
def cross_validate(
    init_from: Model | None,
    train: Path | Iterable[Any],
    output: RunDirectory,
    folds: Annotated[int, Range(2, 1000)] = 5,
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
    r"""Fine-tunes a model on each fold's training part, and evaluates it on the rest.

    Folds are parts of train, stratified by class; copies of a text and groups stay together. The
    last checkpoint is evaluated: nothing is selected, or stopped early, by the held-out part. The
    difference from a bag of words is tested by the corrected resampled t-test of Nadeau and Bengio
    (2003), as the training parts of folds overlap. To resume, run the same command again.

    Args:
      init_from: model to start from: a model directory, HF folder or TF1 release; default: random
        weights, with the vocabulary of vocab.
      train: training data, see `finetune`.
      output: model directory of the fold with the best metric; folds.json there has all results.
      folds: number of folds.
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
      `folds`, `metric` (the name of the metric), its `mean`, `standard_deviation` and `values`
      over folds; for a task with a bag of words, its `bag_of_words` mean, the mean `difference` and
      the two-sided `p_value`. `mean_is_over` counts the folds whose metric is defined, if not all
      are.

    Raises:
      ConfigError: output holds something else than folds of this configuration; or see
        `finetune`.
      DataError, TypeError: see `finetune`.

    Example:
      $ xlnet cross_validate --task=classification --train=notes.csv --init_from=runs/model \
          --output=runs/notes
    """
    from official.xlnet.checkpoints.any_format import load_config
    from official.xlnet.configs.finetuning_defaults import finetuning_configuration

    settings = finetuning_configuration(task, config, set, init_from, load_config)
    with loading_tensorflow():
        from official.xlnet.jobs.finetuning_inputs import FineTuningOptions
        from official.xlnet.projects.trials.folds import cross_validate_examples
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
    return cross_validate_examples(settings, train, output, folds, options)


@PUBLIC_NAMES.register("finetune_repeatedly")
@register_verb(
    "finetune_repeatedly", group=TRAIN, former={"finetune.runs": 1, "finetune.num_runs": 1}
)
@public(num_runs="runs")
def finetune_repeatedly(
    init_from: Model | None,
    train: Path | Iterable[Any],
    dev: Path | Iterable[Any] | None,
    output: RunDirectory,
    runs: Annotated[int, Range(1, 10_000)] = 5,
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
    r"""Fine-tunes a model with several random seeds, and keeps the best one.

    Run k uses the seed `training.seed` + k, for the weights of the head, dropout and the order of
    examples. The same command resumes an interrupted run; finished runs are not repeated and all
    count, so `runs` can be increased later.

    Args:
      init_from: model to start from: a model directory, HF folder or TF1 release; default: random
        weights, with the vocabulary of vocab.
      train: training data, see `finetune`.
      dev: data to evaluate on and to select the best model by; or a share of the training data to
        hold out, e.g. 20%, stratified by class; default: 10%.
      output: model directory of the best run; runs.json there has all results.
      runs: least number of runs.
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
      The metrics of the best run, and `runs`, `best_run`, `metric` (the name of the metric that is
      compared), and its `median`, `lowest`, `highest` and `standard_deviation` over runs.

    Raises:
      ConfigError: output holds something else than runs of this configuration; or see
        `finetune`.
      DataError, TypeError: see `finetune`.

    Example:
      $ xlnet finetune_repeatedly --task=sst2 --train=train.tsv --dev=dev.tsv \
          --init_from=runs/model --output=runs/sst2 --runs=5
    """
    from official.xlnet.checkpoints.any_format import load_config
    from official.xlnet.configs.finetuning_defaults import finetuning_configuration

    settings = finetuning_configuration(task, config, set, init_from, load_config)
    with loading_tensorflow():
        from official.xlnet.jobs.finetuning_inputs import FineTuningOptions
        from official.xlnet.projects.trials.repeated_runs import finetune_examples_repeatedly
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
    return finetune_examples_repeatedly(settings, train, dev, output, runs, options)


@PUBLIC_NAMES.register("search_settings")
@register_verb("search_settings", group=TRAIN, former={"finetune.search": 0})
@public(search="candidates")
def search_settings(
    init_from: Model | None,
    train: Path | Iterable[Any],
    dev: Path | Iterable[Any] | None,
    output: RunDirectory,
    candidates: Annotated[int, Range(1, 1000)] = 9,
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
    r"""Fine-tunes with several learning rates and run lengths, and keeps the best model.

    Candidates have learning rates up to ten times higher or lower and runs up to twice as long or
    short. By successive halving, all run for a ninth of their length, the best third for a third,
    and the best to the end. The settings themselves always reach the end. The same command resumes
    an interrupted search; finished runs are not repeated, so `candidates` can be increased later.

    Args:
      init_from: model to start from: a model directory, HF folder or TF1 release; default: random
        weights, with the vocabulary of vocab.
      train: training data, see `finetune`.
      dev: data to evaluate on and to select the best model by; or a share of the training data to
        hold out, e.g. 20%, stratified by class; default: 10%.
      output: model directory of the best run, with its settings in recipe.yaml, search.png, and
        search.json with all results.
      candidates: number of candidates.
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
      The metrics of the best run, its `learning_rate`, and `candidates`, `runs`, `metric` (the
      name of the metric that is compared) and `recipe` (the path of the recipe).

    Raises:
      ConfigError: output holds something else than a search of this configuration; or see
        `finetune`.
      DataError, TypeError: see `finetune`.

    Example:
      $ xlnet search_settings --task=classification --train=train.tsv --dev=dev.tsv \
          --init_from=runs/model --output=runs/best --candidates=9
    """
    from official.xlnet.checkpoints.any_format import load_config
    from official.xlnet.configs.finetuning_defaults import finetuning_configuration

    settings = finetuning_configuration(task, config, set, init_from, load_config)
    with loading_tensorflow():
        from official.xlnet.jobs.finetuning_inputs import FineTuningOptions
        from official.xlnet.projects.trials.search import search_settings_on_examples
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
    return search_settings_on_examples(settings, train, dev, output, candidates, options)
