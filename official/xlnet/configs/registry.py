"""The registries of implementations that are selected by a configuration key; see `Registry`."""

from __future__ import annotations

import os
from typing import Any

from official.xlnet.errors import DataError, did_you_mean
from official.xlnet.files.registry import FORMER_OPTIONS, Registry  # noqa: F401  One of them.
from official.xlnet.files.urls import FILE_SYSTEMS, LOCAL_COPIES, OTHER_SCHEMES  # noqa: F401  Too.

# Verbs of the command line, see `official.xlnet.api.verbs`, in the order of `xlnet --help`.
VERBS = Registry[Any](
    "verb",
    vocab="api.vocab",
    prepare="api.prepare",
    pretrain="api.pretrain",
    finetune="api.finetune",
    evaluate="api.evaluate",
    predict="api.predict",
    embed="api.embed",
    score="api.score",
    generate="api.generate",
    export="api.export",
    convert="api.convert",
)
# Functions that return what to use instead of a verb of former versions.
REMOVED_VERBS = Registry[Any]("removed verb")
# Functions and classes of `official.xlnet` that projects bring.
PUBLIC_NAMES = Registry[Any]("public name")
NETWORKS = Registry[Any]("model.network", xlnet="modeling.networks.xlnet_encoder")
DEPTHS = Registry[Any]("model.depth", stacked="modeling.depth.stacked")
ATTENTION_INITS = Registry[Any](
    "model.attention_init",
    normal="modeling.ops.initializers",
    neighbors="modeling.ops.neighbors",
)
OBJECTIVES = Registry[Any](
    "objective.kind",
    permutation="modeling.objectives.permutation_lm",
    denoising="modeling.objectives.denoising",
    causal="modeling.objectives.causal_lm",
)
OPTIMIZERS = Registry[Any](
    "training.optimizer",
    adamw="training.optimization",
    lamb="training.optimization",
    muon="training.optimization",
)
SCHEDULES = Registry[Any](
    "training.schedule",
    polynomial="training.schedules",
    cosine="training.schedules",
    constant_with_cooldown="training.schedules",
)
# Each wraps an objective so that it reads inputs of another format: a function that takes the
# function that creates the objective and the configuration, and returns the wrapped objective.
INPUT_FORMATS = Registry[Any]("objective.input_format", pairs="modeling.objectives.base")
AUXILIARY = Registry[Any]("objective.auxiliary")
# Formats of trained models: each opens a folder and returns a `checkpoints.source.Source`.
CHECKPOINT_FORMATS = Registry[Any](
    "format of a trained model",
    xlnet="checkpoints.xlnet_format",
    tf1="checkpoints.convert.tf1_format",
    hf="checkpoints.convert.hf_format",
)
# Each creates a distribution strategy; its argument is the longest wait for other workers, in
# seconds.
STRATEGIES = Registry[Any](
    "strategy",
    one_device="runtime.distribution",
    mirrored="runtime.distribution",
    tpu="runtime.distribution",
)
# Each takes a distribution strategy and returns its `runtime.workers.Workers`; the name is the
# class of the strategy.
WORKERS = Registry[Any]("workers of a strategy")
DEFAULT_TASK = "classification"  # Where nothing names a task; its reader reads any rows of Python.
# Parts of tasks; `tasks/catalog.py` enters the tasks in its folders.
_TASKS = {"": "tasks.catalog"}
TASKS = Registry[Any]("task.name", _TASKS)
HEADS = Registry[Any]("task.name", _TASKS)
FILE_READERS = Registry[Any]("task.name", _TASKS)
# Under `TASK`, readers of folders; under `TASK/FOLDER`, of the files in a folder of that name.
FOLDER_READERS = Registry[Any]("task.name", _TASKS)
SERVICES = Registry[Any]("task.name", _TASKS)
# How the head of a task is stored in the formats of HF and TF1.
HEAD_FORMATS = Registry[Any]("task.name", _TASKS)
# Known data sets: keys of the section `task`.
DATASETS = Registry[dict[str, Any]]("data set", _TASKS)
# {names of the inputs of an exported model, sorted and separated by commas: its task}
INPUTS = Registry[str]("inputs of an exported model", _TASKS)
# Losses of `TaskConfig.auxiliary_loss_weights`: layers that are created with the model section and
# `objective.kind`, are called with (encoder, batch, dropout seed) and return a loss of each unit.
TASK_LOSSES = Registry[Any]("auxiliary loss of a task")
# Units of text that are labelled, see `tasks/token_classification/label_units.py`.
LABEL_UNITS = Registry[Any]("task.label_unit", word="tasks.token_classification.label_units")
ANSWER_MODULES = Registry[Any]("task.answer_module", summary="tasks.classification.graph")
# Formats of the text files of a corpus, by the name that `--format` has.
TEXT_FORMATS = Registry[Any](
    "format",
    text="data_prep.corpus.text_formats",
    jsonl="data_prep.corpus.json_lines",
    wiki="data_prep.corpus.wiki_extractor",
    warc="data_prep.corpus.web_archives",
    parquet="data_prep.corpus.parquet_files",
    tfds="data_prep.corpus.tfds_splits",
)
# The same formats by a pattern that recognizes a file: `*.ENDING` of its name, or its
# `FIRST BYTES*`.
TEXT_FILES = Registry[Any](
    "pattern of text files",
    **dict.fromkeys(("*.jsonl", "*.json", "*.ndjson"), "data_prep.corpus.json_lines"),
    **{"<doc id=*": "data_prep.corpus.wiki_extractor"},
    **{"WARC/1.*": "data_prep.corpus.web_archives"},
    **{"*.parquet": "data_prep.corpus.parquet_files"},
)
# Formats of files with rows of named values, by the same kinds of pattern.
ROW_FILES = Registry[Any](
    "pattern of files with a table",
    **dict.fromkeys(("*.tsv", "*.csv"), "data_prep.tasks.delimited_files"),
    **dict.fromkeys(("*.jsonl", "*.json", "*.ndjson"), "data_prep.tasks.json_files"),
    **dict.fromkeys(("*.parquet", "*.arrow", "*.feather", "*.ipc"), "data_prep.tasks.arrow_files"),
)
# Each reads a file and returns rows with a `text`; for formats that file names do not show.
TEXT_ROW_FORMATS = Registry[Any]("format")
# Each takes (task, train, dev) and returns {metric of a simpler model: value}; None for other
# tasks.
BASELINES = Registry[Any]("baseline")
# Each takes an `inference.orders.OrderRequest` and returns sort keys of the tokens of each text.
ORDERS = Registry[Any](
    "order",
    left_to_right="inference.orders",
    random="inference.orders",
    pseudo="inference.orders",
)
# Each takes log-likelihoods of a text under random orders and returns an estimate, a named tuple;
# None if there are too few orders.
ORDER_ESTIMATES = Registry[Any]("estimate from random orders")
# Ways to decode the targets of texts other than one by one: a dataclass of options with a method
# `predict`; see `inference.generation`.
DECODERS = Registry[Any]("decoder")
# Each takes (model, batches, output directory or None) and returns the loss of held-out targets in
# parts.
BREAKDOWNS = Registry[Any]("by")
# Files of directories of several runs. Each reads the file of its name and returns the
# configuration that the runs began with; see `training.finetuning`.
RUN_FILES = Registry[Any]("file of several runs")
# Functions that make pages about a run that has ended, by file name; see `runtime.pages`.
PRETRAINING_PAGES = Registry[Any]("page of pre-training")
TASK_PAGES = Registry[Any]("page of fine-tuning or of an evaluation")
# Classes of sections with the keys of an extension, by "section.key" and by "section.key=name".
SETTINGS = Registry[Any]("key of an extension", {"task.": "tasks.catalog"})
# Folders of recipes, which are found by name; the first is `configs/` of the checkout.
RECIPE_FOLDERS = [os.path.join(os.path.dirname(os.path.dirname(__file__)), "recipes")]


def task_settings(name: str) -> dict[str, Any]:
    """Returns the task settings of a data set or task type.

    Args:
      name: name of a data set or task type.

    Returns:
      Keys of the section `task` by name.

    Raises:
      DataError: the name is unknown.
    """
    if DATASETS.is_known(name):
        return dict(DATASETS[name])
    if TASKS.is_known(name):
        return {"name": name}
    known = [*TASKS.names(), *DATASETS.names()]
    raise DataError(f"task {name!r}: expected one of {', '.join(known)}{did_you_mean(name, known)}")
