"""Sinusoids against their formula, from static and from unknown sizes."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.layers.relative_position import RelativePositionEncoding, sinusoids


@pytest.mark.parametrize("clamp_len", [0, 4])
def test_sinusoids(clamp_len):
    num_tokens, num_memory, width = 5, 7, 6
    sine, cosine = sinusoids(num_tokens, num_memory, width, clamp_len)
    assert sine.shape == cosine.shape == (16, 3)
    assert sine.dtype == cosine.dtype == np.float32
    for row, distance in enumerate(range(11, -5, -1)):
        clamped = max(-clamp_len, min(clamp_len, distance)) if clamp_len else distance
        for c in range(3):
            angle = clamped / 10000 ** (2 * c / width)
            np.testing.assert_allclose(sine[row, c], np.sin(angle), atol=1e-7)
            np.testing.assert_allclose(cosine[row, c], np.cos(angle), atol=1e-7)


@pytest.mark.parametrize("clamp_len", [0, 4])
def test_layer(clamp_len):
    layer = RelativePositionEncoding(clamp_len)
    hidden_states, memory = np.zeros([3, 1999, 6]), np.zeros([3, 7, 6])

    @tf.function(input_signature=[tf.TensorSpec([None, None, 6])] * 2)
    def dynamic(hidden_states, memory):
        return layer(hidden_states, memory=memory)

    for with_memory in (False, True):
        wanted = sinusoids(1999, 7 if with_memory else 0, 6, clamp_len)
        got = [layer(hidden_states, memory=memory if with_memory else None)]
        if with_memory:
            got.append(dynamic(hidden_states, memory))
        for table in got:
            np.testing.assert_allclose(table.sine, wanted.sine, atol=1e-6)
            np.testing.assert_allclose(table.cosine, wanted.cosine, atol=1e-6)
