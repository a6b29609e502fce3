"""MT-DNN's heads together: each says and costs what it does in a task of its own."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.configs.registry import ANSWER_MODULES, TASKS
from official.xlnet.configs.sections import HeadSections
from official.xlnet.data.examples import TextExample
from official.xlnet.modeling.heads import create_head
from official.xlnet.tasks.batching import TrainingBatches
from official.xlnet.tasks.classification.graph import ClassificationHead, RegressionHead
from official.xlnet.tasks.ranking import RankingExample
from official.xlnet.tasks.ranking.graph import SummaryRankingHead
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.corpora import WORDS, vocabulary_dir
from tests.helpers.task_corpora import task_config
from tests.helpers.tiny import randomize
from tests.projects.multitask.rows import ANSWER_MODULE

UNITS, CANDIDATES, TOKENS, WIDTH = 5, 3, 11, 26
KINDS = {
    "nli": ANSWER_MODULES[ANSWER_MODULE],
    "tone": ClassificationHead,
    "like": RegressionHead,
    "answers": SummaryRankingHead,
}
TASK = {
    "subtasks": tuple(KINDS),
    "labels": ("nli/no", "nli/so", "nli/yes", "tone/bad", "tone/good"),
    "text_columns": ("nli/a", "nli/b", "tone/a", "like/a", "like/b", "answers/d", "answers/q"),
    "target_means": (0.0, 0.0, 2.5, 0.0),
    "target_scales": (1.0, 1.0, 0.7, 1.0),
    "rankings": ("answers",),
    "answer_module": ANSWER_MODULE,
    "num_candidates": CANDIDATES,
}


@pytest.mark.parametrize("name", [pytest.param("nli", marks=pytest.mark.quick), *list(KINDS)[1:]])
def test_losses_are_those_of_tasks_of_their_own(name):
    config = task_config(name="multitask", **TASK)
    head = create_head(config)
    head.build([None, None, None, WIDTH])
    randomize(head.variables, seed=2, scale=0.4)
    assert [type(each) for each in head.heads] == list(KINDS.values())
    assert head.reads_summary == (ANSWER_MODULE == "summary")  # SAN reads all tokens.
    rng = np.random.default_rng(3)
    shape = UNITS, CANDIDATES, TOKENS
    is_missing = np.zeros(shape[:2], bool)
    is_missing[1, 2] = is_missing[4, 1:] = True
    segments = np.where(rng.random(shape) < 0.5, 0, 1)
    batch = {
        "token_ids": rng.integers(9, 211, shape).astype(np.int32),
        "segment_ids": np.where(is_missing[..., None], 4, segments).astype(np.int32),
        "is_padding": np.broadcast_to(is_missing[..., None], shape),
        "label": rng.integers(0, 2, shape[:2]).astype(np.float32),
        "subtask": np.full(UNITS, list(KINDS).index(name), np.int32),
        "weight": np.ones(UNITS, np.float32),
    }
    batch = {key: tf.constant(x) for key, x in batch.items()}
    content = tf.constant(rng.standard_normal((*shape, WIDTH)).astype(np.float32))
    outputs = tf.function(head)(content, batch)
    loss, items = head.loss(outputs, batch), head.num_items(batch)

    own = create_head(HeadSections(config.model, config.task.part(name)))
    own.build([None, None, None, WIDTH])
    own.set_weights(head.heads[list(KINDS).index(name)].get_weights())
    if name == "answers":
        expected, number = own.loss(own(content, batch), batch), np.ones(UNITS)
    else:
        expected, number = np.zeros(UNITS), (~is_missing).sum(axis=1)
        for unit, place in zip(*np.nonzero(~is_missing), strict=True):
            one = {
                key: x[unit : unit + 1, place : place + 1]
                for key, x in batch.items()
                if x.shape.rank > 1
            }
            alone = own(content[unit : unit + 1, place : place + 1], one)
            expected[unit] += own.loss(alone, {"label": one["label"][:, 0]})[0]
    np.testing.assert_allclose(loss, expected, atol=1e-5)
    np.testing.assert_array_equal(items, number)
    # Prediction reads one sequence a unit.
    one = {key: x[:, :1] for key, x in batch.items() if x.shape.rank == 3}
    (alone,) = own(content[:, :1], one).values()
    np.testing.assert_allclose(head(content[:, :1], one)[name], alone, atol=1e-6)


def examples():
    rng = np.random.default_rng(0)
    text = [" ".join(rng.choice(WORDS, 4)) for _ in range(99)]
    found = [
        TextExample(f"n{i}", (text[i], text[-i]), ("no", "so")[i % 2], "nli") for i in range(11)
    ]
    found += [
        TextExample(f"l{i}", (text[20 + i], text[30 + i]), float(i), "like") for i in range(4)
    ]
    return found + [
        RankingExample(
            f"d{query}{place}",
            f"q{query}",
            text[40 + query],
            text[50 + 9 * query + place],
            float(place == 0),
            subtask="answers",
        )
        for query in range(5)
        for place in range(2 + query % 3)
    ]


def test_every_epoch_has_each_example_once_and_batches_of_one_shape():
    config = task_config(
        name="multitask",
        subtasks=("nli", "like", "answers"),
        text_columns=("nli/a", "nli/b", "like/a", "like/b", "answers/d", "answers/q"),
        rankings=("answers",),
        num_candidates=CANDIDATES,
    )
    train = examples()
    TASKS["multitask"].complete_settings(config, train)
    assert config.task.labels == ("nli/no", "nli/so")
    assert config.task.target_means == (0.0, 1.5, 0.0)
    task = TASKS["multitask"](config, Tokenizer(f"{vocabulary_dir()}/spiece.model"))
    units = task.training_units(train)
    batches = TrainingBatches(units, 23, [23], 2, seed=0)
    assert batches.steps_per_epoch == 2 + 1 + 3  # ⌈⌈11/3⌉/2⌉, ⌈⌈4/3⌉/2⌉, ⌈5/2⌉
    stream = batches(0)
    seen = [[], []]
    for epoch in (0, 1):
        for _ in range(batches.steps_per_epoch):
            batch = next(stream)
            assert batch["token_ids"].shape == (2, CANDIDATES, 23)
            assert batch["label"].shape == (2, CANDIDATES)
            is_real = ~batch["is_padding"].all(axis=2) & (batch["weight"] > 0)[:, None]
            if batch["subtask"][0] < 2:
                rows = batch["token_ids"][is_real]
                seen[epoch] += [
                    (*row, y) for row, y in zip(rows.tolist(), batch["label"][is_real], strict=True)
                ]
            else:
                assert (is_real.sum(axis=1)[batch["weight"] > 0] >= 2).all()
    assert len(set(seen[0])) == 15 and sorted(seen[0]) == sorted(seen[1])
    assert seen[0] != seen[1]
