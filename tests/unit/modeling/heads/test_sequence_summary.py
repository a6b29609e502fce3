"""The vector of a sequence, by each kind of summary, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.heads.sequence_summary import SequenceSummary
from tests.helpers.compare import path_of
from tests.helpers.tiny import tiny_config

NUM_PADDING = np.array([0, 2, 5])
TOKENS = 7


def attended(real_TD, query_D, *kernels_DNH):
    """Attention of one query, by each head, as `summarize_sequence` of the release."""
    query, key, value, output = kernels_DNH
    query_NH = np.einsum("d,dnh->nh", query_D, query)
    scores_NT = np.einsum("nh,td,dnh->nt", query_NH, real_TD, key) / np.sqrt(query.shape[-1])
    weights_NT = np.exp(scores_NT) / np.exp(scores_NT).sum(axis=1, keepdims=True)
    return np.einsum("nt,td,dnh,enh->e", weights_NT, real_TD, value, output)


@pytest.mark.parametrize("kind", ["last", "first", "mean", "attn"])
def test_the_summary_is_that_of_numpy(kind):
    model, rng = tiny_config().model, np.random.default_rng(0)
    states_XTD = rng.normal(size=(len(NUM_PADDING), TOKENS, model.d_model)).astype(np.float32)
    layer = SequenceSummary(model, kind)
    layer.build([None, None, model.d_model])
    for weight in layer.weights:
        weight.assign(rng.normal(size=weight.shape) * 0.3)
    own = [weight.numpy() for weight in layer.weights if "projection" not in path_of(weight)]
    kernel, bias = (weight.numpy() for weight in layer.projection.weights)
    found = layer(tf.constant(states_XTD), np.arange(TOKENS) < NUM_PADDING[:, None])
    for row, start in enumerate(NUM_PADDING):
        real = states_XTD[row, start:]
        picked = {"last": real[-1], "first": real[0], "mean": real.mean(axis=0)}.get(kind)
        picked = attended(real, *own) if kind == "attn" else picked
        expected = np.tanh(picked @ kernel + bias)
        np.testing.assert_allclose(found[row], expected, rtol=1e-4, atol=1e-5)
