"""What the experiments share: data sets of a text, results that are kept, and tables."""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from official import xlnet
from official.xlnet.cli import set_environment_defaults
from official.xlnet.files.json_files import read_json, write_json
from official.xlnet.tokenization.special_tokens import VOCAB_FILE

if TYPE_CHECKING:
    from official.xlnet.configs.experiment import XLNetConfig

_SAMPLING_SEED = 1


def parse_arguments(parser: argparse.ArgumentParser, *names: str) -> argparse.Namespace:
    """Adds the flags that several experiments have, reads the command line and sets TensorFlow up.

    Args:
      parser: parser with the experiment's own flags.
      *names: further flags: `text`, `seeds`, `rows` (also gives `minutes`) or `set`.
    """
    flags: dict[str, dict[str, Any]] = {
        "text": {"required": True, "help": "text, one paragraph per line, blank between documents"},
        "seeds": {"type": int, "default": 3, "help": "number of runs, one for each seed"},
        "minutes": {"type": float, "help": "time after which no further run starts"},
        "set": {"action": "append", "default": [], "help": "key=value: overrides a key"},
    }
    parser.add_argument("--output", required=True, help="directory for data, models and results")
    parser.add_argument("--document", help="Markdown file whose tables to write")
    for name in names:
        parser.add_argument(f"--{name}", **flags[name])
    arguments = parser.parse_args()
    set_environment_defaults()
    os.makedirs(arguments.output, exist_ok=True)
    return arguments


def make_data(
    inputs: Sequence[str],
    output: str,
    configs: Mapping[str, XLNetConfig],
    size: int,
    **options: Any,
) -> None:
    """Prepares data sets of a text; the vocabulary is trained once.

    Args:
      inputs: text files.
      output: directory; the vocabulary is `vocab` in it.
      configs: configuration of each data set by its name in `output`.
      size: vocabulary size.
      **options: further arguments of `prepare`.
    """
    from data_prep.corpus.vocabulary import train_vocabulary
    from data_prep.pipelines.prepare import prepare

    vocab = os.path.join(output, "vocab")
    if not os.path.exists(os.path.join(vocab, VOCAB_FILE)):
        keep_accents = next(iter(configs.values())).data.keep_accents
        train_vocabulary(inputs, vocab, size, keep_accents=keep_accents)
    for name, config in configs.items():
        prepare(inputs, vocab, config, os.path.join(output, name), **options)


def kept(path: str, run: Callable[[], Any]) -> Any:
    """Returns the result of a run, from its file if it is finished, else by running it."""
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_json(path, run(), indent=None)
    return read_json(path)


def accuracy(model: str, tables: Sequence[str], output: str, overrides: Sequence[str]) -> float:
    """Fine-tunes a classifier and returns its accuracy on dev.

    Args:
      model: directory of the pre-trained model.
      tables: training and development table.
      output: directory of the fine-tuned model.
      overrides: settings; those that are not given are the configuration's, not chosen.
    """
    from data_prep.tasks.task_data import read_task
    from official.xlnet.api.finetuning import task_configuration
    from official.xlnet.runtime.distribution import prepare_devices
    from official.xlnet.training.finetuning import Start, run_finetuning

    config = task_configuration("classification", None, overrides, model)
    train, dev = (read_task(table, config.task)[0] for table in tables)
    start = Start(prepare_devices(config.training), model)
    return float(run_finetuning(config, train, dev, output, start)["accuracy"])


def sampled_table(path: str, number: int, sample: str) -> str:
    """Writes a random sample of the rows of a table, and returns its path.

    Args:
      path: the table, with a header.
      number: number of rows to take, if there are so many.
      sample: path of the sample.
    """
    with open(path, encoding="utf-8") as file:
        header, *lines = file.readlines()
    if len(lines) > number:
        lines = random.Random(_SAMPLING_SEED).sample(lines, number)
    with open(sample, "w", encoding="utf-8") as file:
        file.writelines([header, *lines])
    return sample


def model_with(model_dir: str, mem_len: int | None = None, batch_size: int = 1) -> Any:
    """Loads a pre-training model with another length of memory and another batch size."""
    config = xlnet.load_config(model_dir, [f"training.batch_size={batch_size}"])
    if mem_len is not None:
        config.model.mem_len = mem_len
    return xlnet.load_pretrainer(model_dir, config)


def markdown_table(rows: Sequence[Sequence[object]]) -> str:
    """Returns a table whose first row is its head."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def mean_and_spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean and standard deviation over seeds; empty where nothing was measured."""
    if np.isnan(values).all():
        return ""
    spread = f" ± {np.nanstd(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.nanmean(values):.{digits}f}{spread}"
