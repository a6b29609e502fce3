"""The unigram baseline against counts of the records' own tokens, and when a run is told of it."""

import math
import random
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from data_prep.pipelines.prepare import prepare
from official.xlnet.data.pretraining_dataset import Records
from official.xlnet.training.unigram_baseline import (
    UnigramBaseline,
    distribution_of,
    unigram_distribution,
)
from tests.helpers.corpora import as_text, random_documents, vocabulary_dir
from tests.helpers.tiny import tiny_config

VOCAB, FIRST_TOKEN = 211, 9


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    directory = tmp_path_factory.mktemp("data")
    (directory / "text.txt").write_text(as_text(random_documents(random.Random(1), 30)))
    config = tiny_config(vocab_size=VOCAB, seq_len=29, reuse_len=11, num_lanes=2)
    prepare(
        [str(directory / "text.txt")], vocabulary_dir(), config, str(directory / "out"),
        num_workers=1,
    )  # fmt: skip
    return directory / "out"


def counts(data):
    found = Counter()
    for record in tf.data.TFRecordDataset(sorted(map(str, data.glob("train-*.tfrecord")))):
        feature = tf.train.Example.FromString(record.numpy()).features.feature
        found.update(i for i in feature["token_ids"].int64_list.value if i >= FIRST_TOKEN)
    return found


def test_probabilities_are_smoothed_counts(data):
    found = counts(data)
    total = sum(found.values()) + VOCAB
    expected = [(found[i] + 1) / total for i in range(VOCAB)]
    np.testing.assert_allclose(
        unigram_distribution(Records(str(data)), VOCAB), expected, rtol=1e-12
    )
    entropy = -sum(p * math.log(p) for p in expected)
    windows = Records(str(data)).batches(2, epochs=1)
    np.testing.assert_allclose(distribution_of(windows, VOCAB), expected, rtol=1e-12)
    baseline = UnigramBaseline(np.array(expected), warmup_steps=0, last_step=10)
    assert baseline.loss == pytest.approx(entropy)


def test_the_first_windows_are_enough(data):
    records = Records(str(data))
    some, every = (unigram_distribution(records, VOCAB, n) for n in (2, 10**6))
    assert some.sum() == pytest.approx(1)
    assert np.abs(some - every).max() > 0


@pytest.mark.parametrize(
    ("warmup_steps", "last_step", "due"), [(0, 5000, 1000), (700, 5000, 1400), (10, 450, 450)]
)
def test_a_run_is_told_once_when_it_should_have_left_the_baseline(warmup_steps, last_step, due):
    for loss, is_told in ((math.log(VOCAB), True), (math.log(VOCAB) - 0.2, False)):
        baseline = UnigramBaseline(np.full(VOCAB, 1 / VOCAB), warmup_steps, last_step)
        told = {
            step: recent
            for step in range(3, last_step + 1, 3)  # Three steps an execution.
            if (recent := baseline.not_beaten(step - 3, step, loss)) is not None
        }
        assert told == ({-(-due // 3) * 3: pytest.approx(loss)} if is_told else {})
