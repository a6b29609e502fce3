"""Which window is read when, by which row; what a batch holds; what is refused."""

import dataclasses
import itertools
import os
import pathlib
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.data.random_records import write_data_set
from official.xlnet.configs.data import DataConfig
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.model import ModelConfig
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.data import pretraining_dataset as reading
from official.xlnet.data.pretraining_dataset import evaluation_batch_size, pretraining_dataset
from official.xlnet.data.schema import Manifest
from official.xlnet.errors import DataError
from official.xlnet.modeling.objectives import create_objective
from official.xlnet.tokenization import special_tokens
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.compare import assert_refused
from tests.helpers.wrong.faulty_records import (
    FAULTS,
    LANE,
    LANES,
    REUSE,
    WINDOWS,
    T,
    write_faulty_lane,
)

DATA = DataConfig(seq_len=T, reuse_len=REUSE, num_predict=3, target_ratio=6.0)


@pytest.fixture(scope="module")
def data_set(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("records"))
    return path, write_data_set(path, T, REUSE, LANES, WINDOWS)


@pytest.fixture
def own_data_set(tmp_path):
    """One that a test may damage."""
    return str(tmp_path), write_data_set(str(tmp_path), T, REUSE, LANES, WINDOWS)


def read(path, num_steps=None, **arguments):
    dataset = pretraining_dataset(path, **arguments)
    return list(itertools.islice(dataset.as_numpy_iterator(), num_steps))


def expected_reads(batch_size, num_steps, num_lanes=LANES, first_step=0):
    """(epoch, window id) [B] of every step: each row walks through its lanes."""
    steps = []
    for step in range(first_step, first_step + num_steps):
        round_number, index = divmod(step, WINDOWS)
        numbers = [round_number * batch_size + b for b in range(batch_size)]
        steps.append([(g // num_lanes, g % num_lanes * WINDOWS + index) for g in numbers])
    return steps


def reads(batches):
    return [
        list(zip(batch["epoch"].tolist(), batch["window_id"].tolist(), strict=True))
        for batch in batches
    ]


@pytest.mark.parametrize("batch_size", [2, 4])
def test_every_window_is_read_once_an_epoch_in_order(data_set, batch_size):
    num_steps = 4 * LANES * WINDOWS // batch_size
    batches = read(data_set[0], num_steps, batch_size=batch_size)
    assert reads(batches) == expected_reads(batch_size, num_steps)
    for batch in batches:
        assert batch["is_reversed"].tolist() == [False, True] * (batch_size // 2)


def test_odd_batches_of_data_in_one_direction(tmp_path):
    write_data_set(str(tmp_path), T, 0, num_lanes=5, windows_per_lane=WINDOWS, bidirectional=False)
    batches = read(str(tmp_path), 12, batch_size=3)
    assert reads(batches) == expected_reads(3, 12, num_lanes=5)
    assert not np.any([batch["is_reversed"] for batch in batches])


def test_what_a_batch_holds(data_set):
    path, windows = data_set
    tokenizer = Tokenizer(os.path.join(path, special_tokens.VOCAB_FILE))
    for batch in read(path, batch_size=6, epochs=1):
        for b, w in enumerate(batch["window_id"]):
            a_length, b_length = windows["a_length"][w], windows["b_length"][w]
            pieces = [tokenizer.id_to_piece(i) for i in windows["token_ids"][w]]
            is_case = [piece[0] == "▁" and piece[1:2].isalpha() for piece in pieces]
            expected = {
                **{name: windows[name][w] for name in ("token_ids", "is_reversed", "is_next")},
                "context_length": windows["context_length"][w],
                "segment_ids": np.repeat([0, 1, 2], [REUSE + a_length + 1, b_length + 1, 1]),
                "is_word_start": [piece[0] in "▁<" for piece in pieces],
                "letter_case": [
                    piece[1].isupper() if has_case else -1
                    for piece, has_case in zip(pieces, is_case, strict=True)
                ],
                "can_be_target": [p not in special_tokens.SPECIAL_PIECES for p in pieces],
            }
            for name, value in expected.items():
                np.testing.assert_array_equal(batch[name][b], value, err_msg=name)


@pytest.mark.parametrize("start_step", [4, 13, 1_000_003])
def test_resume_reads_on_where_it_stopped(data_set, start_step):
    batches = read(data_set[0], 11, batch_size=4, start_step=start_step)
    assert reads(batches) == expected_reads(4, 11, first_step=start_step)


def test_the_heldout_split_is_read_once(tmp_path):
    """So that `fit(validation_data=...)` and `evaluate` come to an end."""
    write_data_set(str(tmp_path), T, REUSE, LANES, WINDOWS, split="heldout")
    dataset = pretraining_dataset(str(tmp_path), batch_size=2, split="heldout")
    assert dataset.cardinality() == LANES // 2 * WINDOWS
    windows = [window for batch in dataset for window in batch["window_id"].numpy()]
    assert sorted(windows) == list(range(LANES * WINDOWS))
    assert_refused(
        "divisor of 6 lanes", pretraining_dataset, str(tmp_path), batch_size=4, split="heldout"
    )


@pytest.mark.parametrize(
    ("num_pipelines", "num_replicas"),
    [(2, 2), (1, 3), *(pytest.param(*n, marks=pytest.mark.slow) for n in [(3, 3), (3, 6)])],
)
def test_pipelines_share_the_rows(data_set, num_pipelines, num_replicas):
    """What all replicas read in a step, side by side, is the batch of a single machine."""
    local, steps = num_replicas // num_pipelines, [[] for _ in range(8)]
    for i in range(num_pipelines):
        context = tf.distribute.InputContext(num_pipelines, i, num_replicas)
        arguments = dict(batch_size=6, start_step=3, input_context=context)
        for number, rows in enumerate(reads(read(data_set[0], 8 * local, **arguments))):
            steps[number // local] += rows
    assert steps == expected_reads(6, 8, first_step=3)


def test_evaluation_batch_size():
    cases = ((16, 16, True), (14, 12, True), (15, 12, False), (7, 5, False))
    assert [evaluation_batch_size(*case) for case in cases] == [16, 2, 5, 1]
    assert_refused(r"at least 2", evaluation_batch_size, 14, 1, True)


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 8}, "from 1 to 6.*num_lanes"),
        ({"batch_size": 0}, "from 1 to 6"),
        ({"batch_size": 3}, "even number.* 3"),
        ({"batch_size": 4, "epochs": 1}, "divisor of 6.*such as 2.* 4"),
        ({"input_context": tf.distribute.InputContext(1, 0, 4)}, "multiple of the 4 replicas"),
        ({"split": "heldout"}, r"'heldout', got train: prepare .* larger data.heldout"),
        (
            {"vocab": __file__},
            r"test_pretraining_dataset.py.*the vocabulary of the records in.*another vocabulary "
            r"\(\w+…\): prepare the text with vocab=\S+test_pretraining_dataset.py$",
        ),
    ],
)
def test_batches_splits_and_vocabularies_that_do_not_fit(data_set, arguments, message):
    assert_refused(message, pretraining_dataset, data_set[0], **{"batch_size": 2, **arguments})


@pytest.mark.parametrize(
    ("vocab_size", "override", "message"),
    [
        (97, {"seq_len": 23}, "seq_len 19.*seq_len 23"),
        (97, {"reuse_len": 8}, "reuse_len 7.*reuse_len 8$"),
        (97, {"reuse_len": 0}, "reuse_len 7.*reuse_len 0; .*exclude memory: model.mem_len=0"),
        (97, {"bidirectional": False}, "bidirectional True.*bidirectional False"),
        (89, {}, "97 pieces.*vocab_size 89"),
        (97, {}, ""),
    ],
)
def test_records_of_other_settings_are_refused(data_set, vocab_size, override, message):
    data = dataclasses.replace(DATA, **override)
    config = XLNetConfig(model=ModelConfig(vocab_size=vocab_size), data=data)
    vocab = os.path.join(data_set[0], special_tokens.VOCAB_FILE)
    if not message:
        pretraining_dataset(data_set[0], 2, config=config, vocab=vocab)
        return
    assert_refused(message, pretraining_dataset, data_set[0], 2, config=config)


@pytest.mark.parametrize("reuse_len", [0, REUSE])
def test_orders_of_the_whole_window_need_no_other_records(data_set, reuse_len):
    """Some token of the first part then comes after one of the second."""
    data = dataclasses.replace(DATA, reuse_len=reuse_len, target_ratio=2.0)
    config = XLNetConfig(model=ModelConfig(vocab_size=97, mem_len=0), data=data)
    batch = next(iter(pretraining_dataset(data_set[0], LANES, config=config)))
    order_BT = create_objective(ObjectiveSections.of(config))(batch).inputs["order"].numpy()
    last_B, first_B = order_BT[:, :REUSE].max(axis=1), order_BT[:, REUSE:].min(axis=1)
    assert (last_B > first_B).any() == (reuse_len == 0)


def rewrite(path, change):
    """Writes the windows of a lane again, as `change` of their list."""
    records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in change(records):
            writer.write(record)


DAMAGES = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-11]),
    "another schema": lambda path: rewrite(path, lambda _: [b""] * WINDOWS),
    "a window less": lambda path: rewrite(path, lambda records: records[:-1]),
    "other bytes": lambda path: path.write_bytes(path.read_bytes()[:-90] + b"no record" * 10),
    "vanished": pathlib.Path.unlink,
}


@pytest.mark.parametrize(
    ("damage", "is_large"),
    [
        ("truncated", False),
        *(pytest.param(damage, False, marks=pytest.mark.slow) for damage in list(DAMAGES)[1:]),
        *((damage, True) for damage in DAMAGES),
    ],
)
def test_damaged_lanes_are_named(own_data_set, damage, is_large, monkeypatch):
    """Small data sets are refused at once, large ones when the damage is met during a run."""
    path, _ = own_data_set
    monkeypatch.setattr(reading, "_CHECKSUM_LIMIT_BYTES", 0 if is_large else 1 << 30)
    dataset = pretraining_dataset(path, 6)
    DAMAGES[damage](pathlib.Path(path, LANE))
    with pytest.raises(DataError, match=f"{LANE}: expected "):
        if not is_large:
            pretraining_dataset(path, 6)
        with reading.reading_errors(path, "train"):
            list(dataset.take(WINDOWS + 1))


QUICK_FAULTS = ("order", "4 windows", "token_ids", "schema", "compression")


@pytest.mark.parametrize(
    "name",
    [
        name if name in QUICK_FAULTS else pytest.param(name, marks=pytest.mark.slow)
        for name in FAULTS
    ],
)
def test_a_faulty_writers_records_are_refused(own_data_set, name):
    """Their checksums fit."""
    path, windows = own_data_set
    sentence = write_faulty_lane(path, windows, name)
    with pytest.raises(DataError, match=sentence), reading.reading_errors(path, "train"):
        list(pretraining_dataset(path, 6).take(WINDOWS + 1))


@pytest.mark.slow
def test_a_resumed_run_names_the_same_faults(data_set, tmp_path, monkeypatch):
    """Lanes are then read by other code, here from the window of the fault on."""
    monkeypatch.setattr(reading, "_CHECKSUM_LIMIT_BYTES", 0)
    damages = ["truncated", "other bytes", "vanished"]
    for name in [*damages, "order", "4 windows", "6 windows", "token_ids", "compression"]:
        path = str(tmp_path / name)
        if name in damages:
            shutil.copytree(data_set[0], path)
            DAMAGES[name](pathlib.Path(path, LANE))
            message = f"{LANE}: expected "
        else:
            windows = write_data_set(path, T, REUSE, LANES, WINDOWS)
            # Of the rest of a lane.
            message = re.sub(r"\d", r"\\d", write_faulty_lane(path, windows, name))
        resumed = reading.Records(path)
        resumed.verify = lambda *arguments: None  # Names a missing file, in every run.
        batches = resumed.batches(6, start_step=2)
        with pytest.raises(DataError, match=message), reading.reading_errors(path, "train"):
            list(batches.take(WINDOWS + 1))


@pytest.mark.parametrize("settings", [{}, {"lowercase": True}, {"keep_accents": True}])
def test_phrases_are_tokenized_as_the_records_were(world, settings):
    manifest = dataclasses.replace(Manifest.load(world.data), source={"settings": settings})
    tokenizer = reading.load_data_tokenizer(manifest, world.data)
    expected = {"lowercase": False, "keep_accents": False} | settings
    assert {name: getattr(tokenizer, name) for name in expected} == expected
