"""What is read of texts that are longer than an input."""

import collections
import random

import pytest
import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import ConfigError
from official.xlnet.tokenization.special_tokens import CLS_ID, SEP_ID
from official.xlnet.training.finetuning import Start, run_finetuning
from tests.helpers.package.of_projects import rows
from tests.helpers.task_corpora import task_config

LENGTH, OTHER = 13, [91, 92]
ROOM = LENGTH - len(OTHER) - 3


class Ids:
    """A tokenizer of texts that are ids."""

    def __init__(self):
        self.counts = collections.Counter()

    def encode_batch(self, texts):
        return [[int(word) for word in text.split()] for text in texts]


def inputs(part):
    return [*part, SEP_ID, *OTHER, SEP_ID, CLS_ID]


def windows(text, advance):
    """Inputs of the first `ROOM` tokens, and of those after each advance that has new ones."""
    starts = [n * advance for n in range(4)]
    is_needed = [start == 0 or start - advance + ROOM < len(text) for start in starts]
    return [
        inputs(text[start : start + ROOM]) if needed else []
        for start, needed in zip(starts, is_needed, strict=True)
    ]


def segments(text):
    """The input cut into three parts; padding comes before it."""
    padded = [None] * (3 * LENGTH - len(inputs(text))) + inputs(text)
    parts = [padded[n * LENGTH : (n + 1) * LENGTH] for n in range(3)]
    return [[i for i in part if i is not None] for part in parts]


def windows_of(stride):
    """Settings, the most tokens that are read, and inputs of what is read."""
    settings = {"long_texts": "windows", "window_stride": stride, "max_windows": 4}
    advance = min(stride, ROOM)
    return settings, ROOM + 3 * advance, lambda text: windows(text, advance)


METHODS = {
    "cut": ({}, ROOM, lambda text: [inputs(text)]),
    **{f"windows {stride}": windows_of(stride) for stride in (1, 3, ROOM, ROOM + 5)},
    "segments": (
        {"long_texts": "memory", "max_windows": 3},
        3 * LENGTH - len(OTHER) - 3,
        segments,
    ),
}


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_read_of_a_long_text(method, side):
    settings, limit, expected = METHODS[method]
    config = task_config(
        name="classification", max_length=LENGTH, truncation_side=side, mem_len=7, **settings
    )
    for size in (0, 1, ROOM, ROOM + 1, limit - 1, limit, limit + 1, 53):
        text = [random.Random(f"{size} {n}").randint(100, 999) for n in range(size)]
        task = TASKS["classification"](config, Ids())
        texts = tuple(" ".join(map(str, ids)) for ids in (text, OTHER))
        [[unit]] = task.units([TextExample("1", texts)])
        part = text[:limit] if side == "right" else text[max(0, size - limit) :]
        assert [s["token_ids"].tolist() for s in unit.sequences] == expected(part), size
        assert task.counts["truncated"] == (size > limit)


READ_LONG_TEXTS = {"classification", "multi_label", "regression", *rows("READ_LONG_TEXTS")}


@pytest.mark.parametrize("method", ["windows", "memory"])
@pytest.mark.parametrize("name", TASKS.names())
def test_tasks_that_read_each_text_as_one_sequence_refuse_other_methods(name, method, tmp_path):
    config = task_config(name=name, long_texts=method, mem_len=3)
    if name in READ_LONG_TEXTS:
        assert TASKS[name].reads_long_texts
        return
    with pytest.raises(ConfigError, match=f"task.long_texts of {name}: expected one of truncate"):
        run_finetuning(config, [], [], str(tmp_path), Start(tf.distribute.get_strategy()))
    config.save(str(tmp_path))
    assert XLNetConfig.load(str(tmp_path)).task.long_texts == method  # Of a model of 1.0.0.
