"""Pages about a run, such as `report.html`, that are written when it has ended."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import logging

from official.xlnet.configs.registry import PRETRAINING_PAGES, TASK_PAGES, Registry
from official.xlnet.configs.validation import require_one_of
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.urls import with_urls

_PAGES: dict[str, Registry[Callable[[Any], str]]] = {
    "pretraining": PRETRAINING_PAGES,
    "task": TASK_PAGES,
}


@dataclasses.dataclass(frozen=True)
class PretrainingRun:
    """A pre-training run that has ended.

    Attributes:
      directory: the model directory.
      result: the dictionary that `pretrain` returns.
      records: the data set, `Records`.
      unigram_loss: loss of a unigram baseline, in nats per target; None if it is unknown.
      model: the model, an `XLNetPretrainer`, if it is better than unigrams and on a single device;
        otherwise None.
    """

    directory: str
    result: Mapping[str, Any]
    records: Any
    unigram_loss: float | None
    model: Any


@dataclasses.dataclass(frozen=True)
class TaskRun:
    """A fine-tuning run that has ended, or an evaluation of fine-tuned models.

    Attributes:
      directory: directory of the report, see `write_report`; of fine-tuning, the model directory.
      task: the task of the models, a `Task`.
      metric: name of the main metric.
      examples: the evaluated examples, with labels.
      models: paths of the models.
    """

    directory: str
    task: Any
    metric: str
    examples: Sequence[Any]
    models: Sequence[str]


def register_page(run: str, file_name: str) -> Callable[[Any], Any]:
    r"""Decorator that registers a function that makes a page about a run.

    When a run has ended, the function gets a `PretrainingRun` or a `TaskRun`
    (`official.xlnet.runtime.pages`) and returns the text of the page, which is written to the
    directory of the run. If it raises an error, a warning is logged, and the run is complete
    without the page.

    Args:
      run: `pretraining`, or `task` for fine-tuning and for evaluations with an output directory.
      file_name: name of the file, e.g. `texts.html`.

    Returns:
      The decorator.

    Raises:
      ConfigError: there is no such run, or another function writes the file.

    Example:
      >>> @register_page("pretraining", "loss.txt")
      ... def loss(run):
      ...     return f"loss {run.result['loss']:.4f} at step {run.result['step']}\n"
    """
    require_one_of("run", run, tuple(_PAGES))
    return _PAGES[run].register(file_name)


def write_pages(run: str, directory: str, make_run: Callable[[], Any]) -> None:
    """Writes all registered pages. An error is a warning: the run is complete without the page.

    Args:
      run: `pretraining` or `task`.
      directory: directory of the run.
      make_run: makes the argument of the functions that make pages.
    """
    pages = _PAGES[run]
    for file_name in pages.names():
        try:
            page = with_urls(pages[file_name](make_run()))
            write_bytes(os.path.join(directory, file_name), page.encode(errors="replace"))
        except Exception as error:
            logging.warning("no %s: %s: %s", file_name, type(error).__name__, error)
