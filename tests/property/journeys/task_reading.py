"""Files of a task through their readers: the rows that are meant, or counted, or refused."""

import collections
import json
import pathlib

from data_prep.tasks.task_data import read_task, stream_task
from official.xlnet.configs.task import TaskConfig
from official.xlnet.errors import XLNetError
from tests.property.journeys.draws.task_files import TABLES, TaskFile, is_doubtful, write_task_file
from tests.property.journeys.promises import promise


def read_files(task: dict, folder: pathlib.Path, counts: collections.Counter) -> None:
    """Reads the files of a task; rows are those that were meant, or are refused or counted."""

    settings = TaskConfig(name=task["kind"])
    for split in ("train", "dev", "test"):
        file = write_task_file(task, folder, split)
        for line in file.sets:
            key, _, value = line.removeprefix("--set=task.").partition("=")
            setattr(settings, key, tuple(json.loads(value)) if value[0] == "[" else value)
        try:
            if split == "test":
                examples, lost = list(stream_task(str(file.path), settings)), {}
            else:
                examples, lost = read_task(str(file.path), settings)
        except XLNetError as error:
            counts[f"refused file: {str(error).partition(': ')[2][:60]}"] += 1
            promise(is_doubtful(task), "a right file is read", f"{split} {error}")
            return
        counts["read file"] += 1
        _rows_are_meant(task, file, examples, sum(lost.values()), split)


def _rows_are_meant(task: dict, file: TaskFile, examples: list, lost: int, split: str) -> None:
    wanted = [
        (row, y) for row, y in file.rows if row is not None and (split == "test" or y is not None)
    ]
    missing = len(file.rows) - len(examples)
    promise(
        missing <= lost, f"{split}: rows are read or counted", (len(file.rows), len(examples), lost)
    )
    promise(
        len(examples) <= len(wanted), f"{split}: no row is made up", (len(examples), len(wanted))
    )
    wanted_rows = [_shown(task["kind"], row, y) for row, y in wanted]
    for example in examples:
        got = _shown(task["kind"], *_read(task["kind"], example))
        promise(
            got in wanted_rows, f"{split}: rows are those that were meant", (got, wanted_rows[:3])
        )
    if len(examples) == len(wanted):
        got_rows = [_shown(task["kind"], *_read(task["kind"], e)) for e in examples]
        promise(got_rows == wanted_rows, f"{split}: rows keep their order", got_rows[:3])


def _read(kind: str, example):
    if kind in TABLES:
        return example.texts, example.label
    if kind == "token_classification":
        return example.words, example.tags
    if kind == "question_answering":
        answer = example.answers[0][0] if example.answers else ""
        return (example.question, example.context), answer if example.has_label else None
    if kind == "multiple_choice":
        return (*example.texts, *example.choices), example.label
    return (example.query, example.document), example.relevance


def _shown(kind: str, row, label) -> str:
    if kind == "question_answering" and label is not None:
        label = label.strip()
    if kind in ("regression", "ranking") and label is not None:
        label = float(label)
    return json.dumps([row, label if label is None or kind != "classification" else str(label)])
