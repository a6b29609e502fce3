"""Fine-tunes a model on a task.

--task is a task type (classification, multi_label, regression, multiple_choice,
question_answering, token_classification, ranking, multitask) or a supported data set (GLUE: cola,
sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli; imdb, yelp2, yelp5, ag_news, dbpedia, amazon2,
amazon5; squad, race, swag, conll2003, qnli_ranking, wnli_ranking). A table needs a column `label`;
all other columns except ids are texts unless --set=task.text_columns=[…] selects some. For
multitask, --train and --dev are NAME=FILE,NAME=FILE.

Running the same command again resumes an interrupted run. --runs=5 trains with five random seeds,
reports the median and spread of the metric, and keeps the best model.

Learning rate, batch size and length of the run follow from the size of the model and the number of
examples where neither --config nor --set gives them. --search=9 compares nine learning rates and
lengths by successive halving, keeps the best model, and writes its settings to recipe.yaml.
"""

from __future__ import annotations

from typing import Any

from absl import flags

from official.xlnet.configs.choices import STRATEGIES
from official.xlnet.files.staging import on_local_disk

FLAGS = flags.FlagValues()
_TASK = flags.DEFINE_string("task", None, "Task type or data set.", flag_values=FLAGS)
_TRAIN = flags.DEFINE_string("train", None, "Training data.", required=True, flag_values=FLAGS)
_EXTRA_TRAIN = flags.DEFINE_multi_string(
    "extra_train",
    [],
    "Further training data for question_answering, FILE or FILE=WEIGHT with its weight in the "
    "loss; may be repeated.",
    flag_values=FLAGS,
)
_DEV = flags.DEFINE_string("dev", None, "Validation data.", required=True, flag_values=FLAGS)
_INIT_FROM = flags.DEFINE_string(
    "init_from", None, "Model directory to initialize from.", flag_values=FLAGS
)
_VOCAB = flags.DEFINE_string(
    "vocab", None, "spiece.model, for training from random weights.", flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Output model directory.", required=True, flag_values=FLAGS
)
_CONFIG = flags.DEFINE_string(
    "config", None, "Configuration: YAML file or model directory.", flag_values=FLAGS
)
_STRATEGY = flags.DEFINE_enum(
    "strategy", "one_device", STRATEGIES, "Distribution strategy.", flag_values=FLAGS
)
_CPU_DEVICES = flags.DEFINE_integer(
    "cpu_devices",
    1,
    "Number of logical CPU devices, for --strategy=mirrored without GPUs.",
    lower_bound=1,
    upper_bound=256,
    flag_values=FLAGS,
)
_RUNS = flags.DEFINE_integer(
    "runs",
    1,
    "Number of runs with different random seeds, of which the best model is kept.",
    lower_bound=1,
    upper_bound=10_000,
    flag_values=FLAGS,
)
_SEARCH = flags.DEFINE_integer(
    "search",
    0,
    "Number of learning rates and lengths of the run to compare; 0 for no search.",
    lower_bound=0,
    upper_bound=1000,
    flag_values=FLAGS,
)
_MAX_LOST = flags.DEFINE_float(
    "max_lost",
    0.05,
    "Largest share of rows that may be unusable: these are left out and counted; more are an "
    "error.",
    lower_bound=0,
    upper_bound=1,
    flag_values=FLAGS,
)
_SET = flags.DEFINE_multi_string(
    "set", [], "Configuration override key=value; may be repeated.", flag_values=FLAGS
)


@on_local_disk(FLAGS, reads=["train", "dev", "init_from", "vocab", "config"], resumes=["output"])
def run() -> dict[str, Any]:
    """Returns the metrics on dev, those of baselines, and counts of skipped and truncated rows."""
    from official.xlnet.api.finetuning import finetune

    return finetune(
        _INIT_FROM.value,
        _TRAIN.value,
        _DEV.value,
        _OUTPUT.value,
        task=_TASK.value,
        config=_CONFIG.value,
        overrides=_SET.value,
        vocab=_VOCAB.value,
        strategy=_STRATEGY.value,
        cpu_devices=_CPU_DEVICES.value,
        num_runs=_RUNS.value,
        extra_train=dict(map(_file_and_weight, _EXTRA_TRAIN.value)),
        search=_SEARCH.value,
        max_lost=_MAX_LOST.value,
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
