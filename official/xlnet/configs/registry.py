"""The registries of implementations that are selected by a configuration key; see `Registry`."""

from __future__ import annotations

import os
from typing import Any

from official.xlnet.errors import DataError, did_you_mean
from official.xlnet.files.former_options import FORMER_OPTIONS  # noqa: F401  One of them.
from official.xlnet.files.registry import Registry
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
# Functions (function that creates the objective, its sections) to the objective on other inputs.
INPUT_FORMATS = Registry[Any]("objective.input_format", pairs="modeling.objectives.base")
AUXILIARY = Registry[Any]("objective.auxiliary")
# Functions (folder) to a `checkpoints.source.Source`: formats of trained models.
CHECKPOINT_FORMATS = Registry[Any](
    "format of a trained model",
    xlnet="checkpoints.xlnet_format",
    tf1="checkpoints.convert.tf1_format",
    hf="checkpoints.convert.hf_format",
)
# Functions (longest wait for other workers, in seconds) that create a distribution strategy.
STRATEGIES = Registry[Any](
    "strategy",
    one_device="runtime.distribution",
    mirrored="runtime.distribution",
    tpu="runtime.distribution",
)
# Functions (distribution strategy) to a `runtime.workers.Workers`, by the class of a strategy.
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
# Names of the inputs of an exported model, in order of the alphabet, to the task.
INPUTS = Registry[str]("inputs of an exported model", _TASKS)
# Losses of `TaskConfig.auxiliary_losses`: layers (model section, objective.kind) that are called
# with (encoder, batch, dropout seed) and return a loss of each unit.
TASK_LOSSES = Registry[Any]("auxiliary loss of a task")
# Classes of what has a label in a text, see `tasks/token_classification/label_units.py`.
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
# The same formats by what a file is recognized by: `*.ENDING` of its name, or its `FIRST BYTES*`.
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
# Functions (path) to rows with a `text`, in formats that the name of a file does not say.
TEXT_ROW_FORMATS = Registry[Any]("format")
# Functions (task, train, dev) to metrics of simpler models by name; None for other tasks.
BASELINES = Registry[Any]("baseline")
# Functions (`inference.orders.OrderRequest`) to the sort keys of the tokens of texts.
ORDERS = Registry[Any](
    "order",
    left_to_right="inference.orders",
    random="inference.orders",
    pseudo="inference.orders",
)
# Functions (log-likelihoods of a text under random orders) to an estimate, a named tuple, or None
# for too few orders.
ORDER_ESTIMATES = Registry[Any]("estimate from random orders")
# Ways to decode the targets of texts other than one by one: a dataclass of options with a method
# `predict`; see `inference.generation`.
DECODERS = Registry[Any]("decoder")
# Functions (model, batches, output directory or None) to the loss of held-out targets in parts.
BREAKDOWNS = Registry[Any]("by")
# Functions (path) to the configuration that the runs in a directory began with, by the name of the
# file that holds it; for directories of several runs, see `training.finetuning`.
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
