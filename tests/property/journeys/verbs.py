"""Runs verbs in this process and checks what each promises however it ends."""

import collections
import contextlib
import dataclasses
import io
import logging
import pathlib
import signal
import time
from unittest import mock

from absl import logging as absl_logging

from official.xlnet import cli
from official.xlnet.training.loop import Loop
from tests.helpers.wrong_input import strict_json
from tests.property.journeys.promises import promise


class Refused(Exception):
    """A verb that ended with status 2 or 70."""

    def __init__(self, verb: str, status: int, sentence: str):
        super().__init__(f"{verb}: {sentence}")
        self.verb, self.status, self.sentence = verb, status, sentence


class Killed(BaseException):
    """The process ends here."""


@dataclasses.dataclass
class World:
    """A journey on its way.

    Attributes:
      journey: its description.
      folder: its files.
      counts: what happened, for the table.
      warnings: warnings of the last verb.
      models: (model directory, what it is) that verbs have made.
    """

    journey: dict
    folder: pathlib.Path
    counts: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    warnings: list[str] = dataclasses.field(default_factory=list)
    result: dict = dataclasses.field(default_factory=dict)

    def __call__(self, verb: str, *arguments: str) -> dict:
        """Runs a verb; returns the JSON of its last line.

        Raises:
          Refused: it ended with status 2 or 70, in one sentence.
          Violation: it ended otherwise.
        """
        started = time.monotonic()
        status, out, err, self.warnings = _run([*verb.split(), *map(str, arguments)])
        self.counts[f"verb {verb}"] += 1
        self.counts[f"seconds {verb}"] += round(time.monotonic() - started, 2)
        if status == 0:
            self.result = strict_json(out.splitlines()[-1])
            return self.result
        if status == 75:
            raise Preempted
        promise(status in (2, 70), f"{verb} ends with a documented status", (status, err[-1500:]))
        promise("Traceback" not in err, f"{verb} refuses without a traceback", err[-1500:])
        sentence = err.splitlines()[-1] if err else ""
        promise(sentence.startswith(f"xlnet {verb}: "), f"{verb} refuses in a sentence", err[-500:])
        raise Refused(verb, status, sentence.removeprefix(f"xlnet {verb}: "))


class Preempted(Exception):
    """A verb ended with status 75."""


class _Warnings(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.seen: list[str] = []

    def emit(self, record):
        self.seen.append(record.getMessage())


def _run(arguments: list[str]) -> tuple[int, str, str, list[str]]:
    out, err, handler = io.StringIO(), io.StringIO(), _Warnings()
    absl_logging.get_absl_logger().addHandler(handler)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = cli.main(arguments)
    finally:
        absl_logging.get_absl_logger().removeHandler(handler)
    return status, out.getvalue(), err.getvalue(), handler.seen


@contextlib.contextmanager
def interrupted(kind: str, at: int):
    """Ends the verb that runs in the block.

    Args:
      kind: `kill` after a step of training, `preempt` (SIGTERM) after it, or `rename`, a kill in
        place of a rename of a file.
      at: number of the step or rename, from 1.
    """
    count = 0

    def counted(original):
        def wrapper(*args, **kwargs):
            nonlocal count
            count += 1
            if kind == "rename" and count == at:
                raise Killed
            result = original(*args, **kwargs)
            if count == at and kind == "kill":
                raise Killed
            if count == at and kind == "preempt":
                signal.raise_signal(signal.SIGTERM)
            return result

        return wrapper

    import os

    with contextlib.ExitStack() as stack:
        if kind == "rename":
            stack.enter_context(mock.patch("os.replace", counted(os.replace)))
        else:
            method = counted(Loop.on_train_batch_end)
            stack.enter_context(mock.patch.object(Loop, "on_train_batch_end", method))
        yield
