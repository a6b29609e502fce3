"""Common parts of the experiments: flags, data sets of a text, saved results, models."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness.command_line import flag, parse, repeated, required
from benchmarks.harness.small_runs import code_digest
from benchmarks.harness.tables import fill_table, recipe_digests
from official import xlnet
from official.xlnet.files.json_files import read_json, write_json
from official.xlnet.tokenization.special_tokens import VOCAB_FILE

if TYPE_CHECKING:
    from official.xlnet.configs.experiment import XLNetConfig

# Flags that several experiments have.
TEXT = required("text, one paragraph per line, blank between documents")
SEEDS = flag(5, "number of runs, one for each seed")
MINUTES = flag(float("inf"), "time after which no further run starts")
SET = repeated("key=value: overrides a key")


def parse_experiment(description: str | None, **flags: dict[str, Any]) -> argparse.Namespace:
    """Reads the command line of an experiment, and makes its output directory.

    The directory is in that of `--output`, under the digest of all code: runs of other code are
    neither resumed nor taken for finished.

    Args:
      description: docstring of the program.
      **flags: its flags, besides `--output` and `--document`.
    """
    given = parse(
        description,
        output=required("directory for data, models and results"),
        document=flag(None, "Markdown file whose tables to write, and the JSON file beside it"),
        **flags,
    )
    given.output = os.path.join(given.output, code_digest())
    os.makedirs(given.output, exist_ok=True)
    return given


def make_data(
    inputs: Sequence[str],
    output: str,
    configs: Mapping[str, XLNetConfig],
    size: int,
) -> None:
    """Prepares data sets of a text; the vocabulary is trained once.

    Args:
      inputs: text files.
      output: directory; the vocabulary is `vocab` in it.
      configs: configuration of each data set by its name in `output`.
      size: vocabulary size.
    """
    from official.xlnet.api.prepare import prepare
    from official.xlnet.api.vocab import train_vocabulary

    vocab = os.path.join(output, "vocab")
    if not os.path.exists(os.path.join(vocab, VOCAB_FILE)):
        keep_accents = next(iter(configs.values())).data.keep_accents
        train_vocabulary(inputs, vocab, size, keep_accents=keep_accents)
    for name, config in configs.items():
        prepare(inputs, vocab, config, os.path.join(output, name))


def train(config: Any, data: str, model_dir: str, overrides: Sequence[str] = ()) -> float | None:
    """Pre-trains a model, and keeps its CPU-seconds in a file beside it.

    Args:
      config: configuration or path of a recipe.
      data: data set.
      model_dir: directory of the model.
      overrides: `key=value` overrides of the recipe.

    Returns:
      The CPU-seconds; None if training was interrupted and resumed, as its start was not counted.
    """
    path, is_new = f"{model_dir}.json", not os.path.exists(model_dir)
    start = time.process_time()
    xlnet.pretrain(config, data, model_dir, overrides)
    if is_new:
        write_json(path, {"cpu_seconds": round(time.process_time() - start, 1)}, indent=None)
    return read_json(path)["cpu_seconds"] if os.path.exists(path) else None


def heldout_documents(data_dir: str) -> Iterator[np.ndarray]:
    """The held-out documents of a forward data set, in tokens; lanes may begin and end inside one.

    Args:
      data_dir: the data set.

    Yields:
      int32 [tokens].
    """
    from official.xlnet.data.schema import Manifest
    from official.xlnet.tokenization.special_tokens import EOD_ID

    manifest = Manifest.load(data_dir)
    rows = manifest.splits["heldout"].num_lanes
    parts: list[list[np.ndarray]] = [[] for _ in range(rows)]
    for batch in xlnet.pretraining_dataset(data_dir, rows, "heldout", epochs=1):
        for row, tokens in enumerate(batch["token_ids"].numpy()[:, : manifest.reuse_len]):
            parts[row].append(tokens)
    for lane in parts:
        tokens = np.concatenate(lane)
        ends = np.flatnonzero(tokens == EOD_ID)
        for document in np.split(tokens, ends):
            yield document[document != EOD_ID]


def kept(path: str, run: Callable[[], Any], *recipes: str) -> Any:
    """Returns the result of a run, from its file if it is finished, else by running it.

    Args:
      path: JSON file of the result.
      run: returns a dictionary, to which `measured` is added: digests of the recipes.
      *recipes: paths of its recipes.
    """
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_json(path, run() | {"measured": recipe_digests(*recipes)}, indent=None)
    return read_json(path)


def publish(
    document: str, name: str, runs: Sequence[Mapping[str, Any]], tables: Mapping[str, str]
) -> None:
    """Writes runs to the JSON file beside a document, and their tables into the document.

    Args:
      document: path of the Markdown file.
      name: key of the runs in the JSON file.
      runs: results of `kept`.
      tables: {name of a table: Markdown text}.
    """
    path = os.path.splitext(document)[0] + ".json"
    others = read_json(path) if os.path.exists(path) else {}
    write_json(path, others | {name: runs}, indent=None)
    for table, text in tables.items():
        fill_table(document, table, text, (x for run in runs for x in run["measured"]))


def accuracy(model: str, tables: Sequence[str], output: str, overrides: Sequence[str]) -> float:
    """Fine-tunes a classifier and returns its accuracy on dev.

    Args:
      model: directory of the pre-trained model.
      tables: training and development table.
      output: directory of the fine-tuned model.
      overrides: settings; those that are not given are the configuration's, not chosen.
    """
    from data_prep.tasks.task_data import read_task
    from official.xlnet.jobs.finetuning import task_configuration
    from official.xlnet.runtime.distribution import prepare_devices
    from official.xlnet.training.finetuning import Start, run_finetuning

    config = task_configuration("classification", None, overrides, model)
    train, dev = (read_task(table, config.task)[0] for table in tables)
    start = Start(prepare_devices(config.training), model)
    return float(run_finetuning(config, train, dev, output, start)["accuracy"])


def model_with(model_dir: str, mem_len: int | None = None, batch_size: int = 1) -> Any:
    """Loads a pre-training model with another length of memory and another batch size."""
    config = xlnet.load_config(model_dir, [f"training.batch_size={batch_size}"])
    if mem_len is not None:
        config.model.mem_len = mem_len
    return xlnet.load_pretrainer(model_dir, config)
