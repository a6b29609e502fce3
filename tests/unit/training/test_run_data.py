"""The data of a pre-training run."""

import itertools

import numpy as np
import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.pretraining_dataset import Records
from official.xlnet.training.run_data import RunData


def test_held_out_batches_are_an_epoch_again_and_again(world):
    """Without an end: of finite data, TensorFlow does not tell several workers how many rows."""
    config = XLNetConfig.load(world.config)
    config.training.evaluation_steps = 1
    records = Records(world.data, config)
    batches, number = RunData(config.training, records, tf.distribute.get_strategy()).heldout
    assert int(batches.cardinality()) == tf.data.INFINITE_CARDINALITY
    first, second = (
        [batch["window_id"].numpy() for batch in itertools.islice(batches, start, start + number)]
        for start in (0, number)
    )
    np.testing.assert_array_equal(first, second)
    assert np.unique(first).size == records.split("heldout").windows
