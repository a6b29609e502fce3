"""Target-position awareness (paper, appendix A.1): what only the query stream can know.

One fixed beginning is followed by seven different tokens; each is to be predicted from the
beginning alone. The content of the beginning is the same for all seven, so whatever is predicted
from it is one distribution q for seven equally likely tokens, and Σ -log q(x_i) / 7 ≥ log 7. The
query stream knows where its target is, and can tell them apart.
"""

import numpy as np
import tensorflow as tf
import tf_keras

from official.xlnet.modeling.layers.losses import cross_entropy_sum
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from tests.helpers.tiny import tiny_config

BEGINNING, TARGETS, STEPS = 6, 7, 60


def losses_of(stream, steps=STEPS):
    """Mean loss of every step of training where predictions are read from a stream."""
    model = XLNetPretrainer(tiny_config(num_layers=1, init_std=0.1, mem_len=0))
    optimizer = tf_keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)  # Or the step would be traced twice.
    tokens = 10 + np.arange(BEGINNING + TARGETS)
    inputs = {
        "token_ids": tf.constant([tokens], tf.int32),
        "order": tf.constant([[0] * BEGINNING + [1] * TARGETS]),
    }
    labels = tf.constant([tokens[BEGINNING:]], tf.int32)
    if stream == "query":
        inputs["target_positions"] = BEGINNING + tf.range(TARGETS)[None]
    else:
        inputs["content_positions"] = tf.fill([1, TARGETS], BEGINNING - 1)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            outputs = model(inputs)
            loss = cross_entropy_sum(outputs["logits"], labels, tf.ones([1, TARGETS])) / TARGETS
        gradients = tape.gradient(loss, model.trainable_variables)
        pairs = zip(gradients, model.trainable_variables, strict=True)
        optimizer.apply_gradients([pair for pair in pairs if pair[0] is not None])
        return loss

    return np.array([float(step()) for _ in range(steps)])


def test_only_the_query_stream_tells_targets_apart():
    bound = np.log(TARGETS)
    assert losses_of("query")[-1] < 0.1 * bound
    without = losses_of("content")
    assert without.min() >= bound - 1e-4, "the same prediction for all: it cannot be below"
    assert without[-1] < 1.1 * bound, "although it has learned which seven tokens there are"
