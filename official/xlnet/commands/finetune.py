r"""Fine-tunes a model on a task.

--task is a task type (classification, multi_label, regression, multiple_choice,
question_answering, question_answering_simple, token_classification, ranking, multitask) or a
supported data set (GLUE: cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli; imdb, yelp2, yelp5,
ag_news, dbpedia, amazon2, amazon5; squad, race, swag, conll2003, qnli_ranking, wnli_ranking). A
table needs a column of labels; all other columns except ids are texts unless
--set=task.text_columns=[…] selects some. For multitask, --train and --dev are NAME=FILE,NAME=FILE.
--dev=10% holds out a part of the training data: stratified by class, copies of a text together, or,
with --set=task.group_column=patient_id, the rows of one group.

Running the same command again resumes an interrupted run. --runs=5 trains with five random seeds,
reports the median and spread of the metric, and keeps the best model.

Learning rate, batch size and length of the run follow from the size of the model and the number of
examples where neither --config nor --set gives them. --search=9 compares nine learning rates and
lengths by successive halving, keeps the best model, and writes its settings to recipe.yaml.

Example:
  xlnet finetune --task=sst2 --train=train.tsv --dev=dev.tsv --init_from=runs/model \
      --output=runs/sst2
"""

from __future__ import annotations

from typing import Any

from official.xlnet.commands import (
    DEVICES,
    MAX_LOST_ROWS,
    REQUIRED,
    SET,
    boolean,
    config,
    flag_table,
    integer,
    repeated,
    string,
)
from official.xlnet.files.staging import on_local_disk

FLAGS = flag_table(
    string("task", None, "Task type or data set."),
    string("train", REQUIRED, "Training data."),
    repeated(
        "extra_train",
        default=[],
        text="Further training data for question_answering, FILE or FILE=WEIGHT with its weight in "
        "the loss; may be repeated.",
    ),
    string(
        "dev", None, "Validation data, or a share of the training data to hold out; default: 10%."
    ),
    string("init_from", None, "Model directory to initialize from."),
    string("vocab", None, "spiece.model, for training from random weights."),
    string("output", REQUIRED, "Output model directory."),
    config(),
    DEVICES,
    integer(
        "runs",
        default=1,
        text="Number of runs with different random seeds; the best model is kept.",
        least=1,
        most=10_000,
    ),
    integer(
        "search",
        default=0,
        text="Number of learning rates and lengths of the run to compare; 0 for no search.",
        most=1000,
    ),
    integer(
        "folds",
        default=0,
        text="Number of folds of a cross-validation over --train, without --dev; 0 for none.",
        most=1000,
    ),
    boolean(
        "new_head",
        False,
        "Start with a new head, even if the head of a fine-tuned --init_from fits.",
    ),
    MAX_LOST_ROWS,
    SET,
)


@on_local_disk(FLAGS, reads=["train", "dev", "init_from", "vocab", "config"], resumes=["output"])
def run() -> dict[str, Any]:
    """Returns the metrics on dev, also of baselines, and counts of skipped and truncated rows."""
    from official.xlnet.api.finetuning import finetune

    return finetune(
        FLAGS.init_from,
        FLAGS.train,
        FLAGS.dev,
        FLAGS.output,
        task=FLAGS.task,
        config=FLAGS.config,
        overrides=FLAGS.set,
        vocab=FLAGS.vocab,
        strategy=FLAGS.strategy,
        cpu_devices=FLAGS.cpu_devices,
        cluster_timeout=FLAGS.cluster_timeout,
        num_runs=FLAGS.runs,
        extra_train=dict(map(_file_and_weight, FLAGS.extra_train)),
        search=FLAGS.search,
        max_lost=FLAGS.max_lost,
        new_head=FLAGS.new_head,
        folds=FLAGS.folds,
    )


def _file_and_weight(argument: str) -> tuple[str, float]:
    """The file of FILE or FILE=WEIGHT, and its weight.

    Example:
      >>> _file_and_weight("news.json=0.5")
      ('news.json', 0.5)
    """
    path, equals, weight = argument.rpartition("=")
    if not equals:
        return argument, 1.0
    try:
        return path, float(weight)
    except ValueError:
        return argument, 1.0  # A file with = in its name.
