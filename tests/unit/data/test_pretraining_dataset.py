"""Which window is read when, by which row; what a batch holds; what is refused."""

import dataclasses
import itertools
import os

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.data.random_records import write_data_set, write_lane
from official.xlnet.configs.data import DataConfig
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.model import ModelConfig
from official.xlnet.data import pretraining_dataset as reading
from official.xlnet.data import schema
from official.xlnet.data.pretraining_dataset import evaluation_batch_size, pretraining_dataset
from official.xlnet.data.schema import Manifest
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.modeling.objectives import permutation_sampling
from official.xlnet.tokenization import special_tokens
from official.xlnet.tokenization.tokenizer import Tokenizer

T, REUSE, LANES, WINDOWS = 19, 7, 6, 5
CONFIG = XLNetConfig(
    model=ModelConfig(vocab_size=97),
    data=DataConfig(seq_len=T, reuse_len=REUSE, num_predict=3, target_ratio=6.0),
)


@pytest.fixture(scope="module")
def data_set(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("records"))
    return path, write_data_set(path, T, REUSE, LANES, WINDOWS)


@pytest.fixture
def own_data_set(tmp_path):
    """One that a test may damage."""
    windows = write_data_set(str(tmp_path), T, REUSE, LANES, WINDOWS)
    return str(tmp_path), windows


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


def replace_lane(path, windows, lane, rows):
    """Writes a lane of other rows and its checksum, as a faulty writer would."""
    name = schema.lane_file("train", lane, LANES)
    manifest = Manifest.load(path)
    train = manifest.splits["train"]
    sha256 = write_lane(os.path.join(path, name), windows, rows)
    train = dataclasses.replace(train, files={**train.files, name: sha256})
    dataclasses.replace(manifest, splits={"train": train}).save(path)


@pytest.mark.parametrize("batch_size", [2, 4, 6])
def test_rows_read_their_lanes_in_order(data_set, batch_size):
    path, _ = data_set
    num_steps = 4 * LANES * WINDOWS // batch_size
    batches = read(path, num_steps, batch_size=batch_size)
    got = reads(batches)
    assert got == expected_reads(batch_size, num_steps)
    # Every window exactly once in each of the four epochs.
    everything = list(itertools.chain(*got))
    assert sorted(everything) == list(itertools.product(range(4), range(LANES * WINDOWS)))
    for batch in batches:
        assert batch["is_reversed"].tolist() == [False, True] * (batch_size // 2)


def test_what_a_batch_holds(data_set):
    path, windows = data_set
    tokenizer = Tokenizer(os.path.join(path, special_tokens.VOCAB_FILE))
    for batch in read(path, batch_size=6, epochs=1):
        for b, w in enumerate(batch["window_id"]):
            ids = windows["token_ids"][w]
            np.testing.assert_array_equal(batch["token_ids"][b], ids)
            np.testing.assert_array_equal(
                batch["segment_ids"][b],
                schema.segment_ids(REUSE, windows["a_length"][w], windows["b_length"][w]),
            )
            pieces = [tokenizer.id_to_piece(i) for i in ids]
            np.testing.assert_array_equal(
                batch["is_word_start"][b], [piece[0] in "▁<" for piece in pieces]
            )
            np.testing.assert_array_equal(
                batch["letter_case"][b],
                [
                    -1 if piece[0] != "▁" or not piece[1:2].isalpha() else piece[1].isupper()
                    for piece in pieces
                ],
            )
            np.testing.assert_array_equal(
                batch["can_be_target"][b],
                [piece not in special_tokens.SPECIAL_PIECES for piece in pieces],
            )
            for name in ("is_reversed", "context_length", "is_next"):
                assert batch[name][b] == windows[name][w]


@pytest.mark.parametrize("start_step", [1, 4, 5, 13, 1_000_003])
def test_resume_reads_on_where_it_stopped(data_set, start_step):
    batches = read(data_set[0], 11, batch_size=4, start_step=start_step)
    assert reads(batches) == expected_reads(4, 11, first_step=start_step)


def test_targets_are_fresh_in_every_epoch_and_the_same_after_a_resume(data_set):
    def orders(batches):
        other = ("segment_ids", "letter_case", "context_length", "is_next", "follows")
        fed = [name for name in batches[0] if name not in other]
        return [
            permutation_sampling.sample_targets_and_order(
                **{name: tf.constant(batch[name]) for name in fed}, data=CONFIG.data, seed=1
            ).order.numpy()
            for batch in batches
        ]

    steps = orders(read(data_set[0], 10, batch_size=6))
    np.testing.assert_array_equal(
        steps[7:], orders(read(data_set[0], 3, batch_size=6, start_step=7))
    )
    assert all((steps[i] != steps[i + 5]).any(axis=1).all() for i in range(5))


def test_the_heldout_split_is_read_once(tmp_path):
    """So that `fit(validation_data=...)` and `evaluate` come to an end."""
    write_data_set(str(tmp_path), T, REUSE, LANES, WINDOWS, split="heldout")
    dataset = pretraining_dataset(str(tmp_path), batch_size=2, split="heldout")
    assert dataset.cardinality() == LANES // 2 * WINDOWS
    windows = [window for batch in dataset for window in batch["window_id"].numpy()]
    assert sorted(windows) == list(range(LANES * WINDOWS))
    with pytest.raises(ConfigError, match="divisor of 6 lanes"):
        pretraining_dataset(str(tmp_path), batch_size=4, split="heldout")


@pytest.mark.parametrize(
    ("num_pipelines", "num_replicas"), [(1, 2), (2, 2), (3, 3), (1, 6), (3, 6)]
)
def test_pipelines_share_the_rows(data_set, num_pipelines, num_replicas):
    """What all replicas read in a step, side by side, is the batch of a single machine."""
    parts = [
        reads(
            read(
                data_set[0],
                8 * num_replicas // num_pipelines,
                batch_size=6,
                start_step=3,
                input_context=tf.distribute.InputContext(num_pipelines, i, num_replicas),
            )
        )
        for i in range(num_pipelines)
    ]
    local = num_replicas // num_pipelines
    steps = [
        list(
            itertools.chain(
                *(itertools.chain(*part[i * local : (i + 1) * local]) for part in parts)
            )
        )
        for i in range(8)
    ]
    assert steps == expected_reads(6, 8, first_step=3)


def test_evaluation_batch_size():
    assert evaluation_batch_size(16, 16, True) == 16
    assert evaluation_batch_size(14, 12, True) == 2
    assert evaluation_batch_size(15, 12, False) == 5
    assert evaluation_batch_size(7, 5, False) == 1
    with pytest.raises(ConfigError, match=r"at least 2"):
        evaluation_batch_size(14, 1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 8}, "from 1 to 6.*num_lanes"),
        ({"batch_size": 0}, "from 1 to 6"),
        ({"batch_size": 3}, "even number.* 3"),
        ({"batch_size": 4, "epochs": 1}, "divisor of 6.*such as 2.* 4"),
        (
            {"batch_size": 2, "input_context": tf.distribute.InputContext(1, 0, 4)},
            "multiple of the 4 replicas",
        ),
    ],
)
def test_batches_that_do_not_fit(data_set, arguments, message):
    with pytest.raises(ConfigError, match=message):
        pretraining_dataset(data_set[0], **arguments)


@pytest.mark.parametrize(
    ("section", "override", "message"),
    [
        ("data", {"seq_len": 23}, "seq_len 19.*seq_len 23"),
        ("data", {"reuse_len": 8}, "reuse_len 7.*reuse_len 8"),
        ("data", {"bidirectional": False}, "bidirectional True.*bidirectional False"),
        ("model", {"vocab_size": 89}, "97 pieces.*vocab_size 89"),
    ],
)
def test_records_of_other_lengths(data_set, section, override, message):
    pretraining_dataset(data_set[0], 2, config=CONFIG)
    changed = dataclasses.replace(getattr(CONFIG, section), **override)
    with pytest.raises(DataError, match=message):
        pretraining_dataset(
            data_set[0], 2, config=dataclasses.replace(CONFIG, **{section: changed})
        )


def test_vocabulary_of_the_model(data_set, tmp_path):
    path, _ = data_set
    pretraining_dataset(path, 2, vocab=os.path.join(path, special_tokens.VOCAB_FILE))
    other = tmp_path / "other.model"
    other.write_bytes(b"other")
    with pytest.raises(DataError, match=r"other.model.*the vocabulary of the records in"):
        pretraining_dataset(path, 2, vocab=str(other))


def test_missing_things(own_data_set):
    path, _ = own_data_set
    with pytest.raises(DataError, match=r"no data set at"):
        pretraining_dataset(os.path.join(path, "nowhere"), 2)
    with pytest.raises(DataError, match=r"'heldout', got train: prepare .* larger data.heldout"):
        pretraining_dataset(path, 2, split="heldout")
    os.remove(os.path.join(path, "train-00003-of-00006.tfrecord"))
    with pytest.raises(DataError, match=r"train-00003-of-00006.tfrecord: expected a record file"):
        pretraining_dataset(path, 2)


def truncate(path):
    os.truncate(path, os.path.getsize(path) - 11)


def make_foreign(path):
    with open(path, "wb") as file:
        file.write(b"This is no record file. " * 40)


def use_another_schema(path):
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(WINDOWS):
            writer.write(tf.train.Example().SerializeToString())


def drop_a_window(path):
    records = list(tf.data.TFRecordDataset(path).as_numpy_iterator())
    with tf.io.TFRecordWriter(path) as writer:
        for record in records[:-1]:
            writer.write(record)


@pytest.mark.parametrize("damage", [truncate, make_foreign, use_another_schema, drop_a_window])
@pytest.mark.parametrize("is_large", [False, True])
def test_damaged_lanes_are_named(own_data_set, damage, is_large, monkeypatch):
    """Small data sets are refused at once, large ones when the damage is met."""
    path, _ = own_data_set
    name = schema.lane_file("train", 2, LANES)
    damage(os.path.join(path, name))
    monkeypatch.setattr(reading, "_CHECKSUM_LIMIT_BYTES", 0 if is_large else 1 << 30)
    if is_large:
        dataset = pretraining_dataset(path, 6)
    with pytest.raises(DataError, match=f"{name}: expected SHA-256"):
        if not is_large:
            pretraining_dataset(path, 6)
        with reading.reading_errors(path, "train"):
            list(dataset.take(WINDOWS + 1))


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (range(14, 9, -1), r"out of order.*expected window ids"),
        (range(10, 14), r"a lane was expected to contain 5 elements but contained only 4"),
        (range(10, 16), r"a lane was expected to contain 5 elements but contained at least 6"),
        (range(0), r"a lane was expected to contain 5 elements but contained only 0"),
    ],
)
def test_windows_out_of_order(own_data_set, rows, sentence):
    path, windows = own_data_set
    replace_lane(path, windows, 2, rows)
    dataset = pretraining_dataset(path, 6)
    with (
        pytest.raises(DataError, match=sentence),
        reading.reading_errors(path, "train"),
    ):
        list(dataset.take(WINDOWS + 1))


WRONG_VALUES = {
    "token_ids": (10**9, "token_ids: expected from 0 to "),
    "a_length": (-500, "a_length: expected from 0 to 9 got"),
    "b_length": (2**31, "b_length: expected from"),
    "is_next": (2, "is_next: expected from 0 to 1 got"),
    "context_length": (-1, "context_length: expected from 0"),
    "is_reversed": (3, "is_reversed: expected from 0 to 1"),
}


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_a_value_out_of_its_range_is_named(own_data_set, name):
    """The checksums fit: a stranger wrote them."""
    path, windows = own_data_set
    value, sentence = WRONG_VALUES[name]
    windows = {key: numbers.copy() for key, numbers in windows.items()}
    windows[name].reshape(len(windows["a_length"]), -1)[12, 0] = value
    replace_lane(path, windows, 2, range(10, 15))
    with pytest.raises(DataError, match=sentence), reading.reading_errors(path, "train"):
        list(pretraining_dataset(path, 6).take(WINDOWS))


@pytest.mark.parametrize("kind", ["length", "schema", "bytes", "compression"])
def test_records_of_another_form_are_refused(own_data_set, kind, monkeypatch):
    path, windows = own_data_set
    if kind == "bytes":  # TensorFlow's message shows them, and is not UTF-8.
        monkeypatch.setattr(tf.train.Example, "SerializeToString", lambda *_, **__: b"\xff" * 9)
    if kind == "length":
        windows = {**windows, "token_ids": windows["token_ids"][:, :-1]}
    elif kind == "schema":
        windows = {name: windows[name] for name in windows if name != "a_length"}
    replace_lane(path, windows, 2, range(10, 15))
    if kind == "compression":
        dataclasses.replace(Manifest.load(path), compression="GZIP").save(path)
    sentence = "compressed as" if kind == "compression" else "expected records of the schema, got"
    with pytest.raises(DataError, match=sentence), reading.reading_errors(path, "train"):
        list(pretraining_dataset(path, 6).take(WINDOWS))
