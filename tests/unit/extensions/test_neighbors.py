"""Heads that start by attending to one neighbor each."""

import numpy as np
import pytest
import tf_keras

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.extensions.neighbors import NeighborBias, NeighborKernel
from official.xlnet.modeling.layers.relative_attention import TwoStreamRelativeAttention
from official.xlnet.modeling.layers.relative_position import RelativePositionEncoding, sinusoids
from official.xlnet.modeling.layers.two_stream_mask import TwoStreamAttentionMask
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder

DISTANCES = (1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6)  # Query position minus key position.


@pytest.mark.parametrize(
    ("width", "num_heads"), [(128, 4), (256, 4), (768, 12), (1024, 16), (44, 2), (30, 3)]
)
def test_score_is_greatest_at_the_neighbor_of_the_head(width, num_heads):
    d_head, num_tokens = width // num_heads, 61
    kernel = NeighborKernel(0.0)([width, num_heads, d_head]).numpy()
    bias = NeighborBias(0.0, width)([num_heads, d_head]).numpy()
    table = sinusoids(num_tokens, 0, width)
    distances = np.arange(num_tokens - 1, -num_tokens, -1)
    position = np.einsum("rd,dnh->rnh", np.concatenate(table, axis=1), kernel)
    scores = np.einsum("rnh,nh->nr", position, bias) / np.sqrt(d_head)
    for head, own in enumerate(DISTANCES[:num_heads]):
        by_distance = dict(zip(distances.tolist(), scores[head], strict=True))
        best = by_distance.pop(own)
        for neighbor in (own - 1, own + 1):
            assert best - by_distance.pop(neighbor) == pytest.approx(2.0, abs=1e-4)
        assert best - max(by_distance.values()) > 2.0


@pytest.mark.parametrize("untie_r", [True, False])
@pytest.mark.parametrize("reverse", [False, True])
def test_encoder_attends_to_neighbors_of_the_text(untie_r, reverse):
    config = XLNetConfig.from_dict(
        {
            "model": {
                **{"vocab_size": 97, "num_layers": 2, "d_model": 128, "num_heads": 4},
                **{"d_inner": 64, "mem_len": 0, "untie_r": untie_r, "init_std": 0.02},
                "attention_init": "neighbors",
            }
        }
    )
    encoder = XLNetEncoder(config)
    token_ids = np.random.default_rng(1).integers(9, 97, [2, 17])
    inputs = {"token_ids": token_ids, "is_reversed": [reverse, reverse]}
    scores_LBNTK = encoder(inputs, return_attention_scores=True)["attention_scores"].numpy()
    middle = np.arange(4, 13)
    for head, own in enumerate(DISTANCES[:4]):
        expected = middle + own if reverse else middle - own
        found = scores_LBNTK[:, :, head, 4:13].argmax(axis=-1)
        assert (found == expected).all()


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_start_with_a_share_of_each_neighbor(reverse):
    """Attention alone, with sharp heads, writes elements of the neighbors side by side."""
    layer = TwoStreamRelativeAttention(4, 32, init_std=0.0, attention_init="neighbors")
    rng = np.random.default_rng(2)
    hidden = rng.standard_normal([2, 19, 128]).astype(np.float32)
    layer.build([None, None, 128])
    layer.biases.position.assign(50 * layer.biases.position)
    mask, table = TwoStreamAttentionMask()(hidden), RelativePositionEncoding()(hidden)
    output = layer(hidden, mask, table, is_reversed=[reverse, reverse]).numpy()
    for head, own in enumerate(DISTANCES[:4]):
        share = slice(32 * head, 32 * head + 32)
        shifted = np.roll(hidden, -own if reverse else own, axis=1)
        np.testing.assert_allclose(output[:, 3:16, share], shifted[:, 3:16, share], atol=1e-3)


def test_noise_is_that_of_the_normal_initializer():
    kernel = NeighborKernel(0.02)([64, 2, 32]).numpy() - NeighborKernel(0.0)([64, 2, 32]).numpy()
    assert np.std(kernel) == pytest.approx(0.02, rel=0.1)
    bias = NeighborBias(0.02, 1024)([16, 64]).numpy() - NeighborBias(0.0, 1024)([16, 64]).numpy()
    assert np.std(bias) == pytest.approx(0.02, rel=0.2)


def test_initial_values_are_the_same_for_the_same_seed():
    def weights():
        tf_keras.utils.set_random_seed(3)
        model = {"vocab_size": 101, "num_layers": 1, "attention_init": "neighbors"}
        config = XLNetConfig.from_dict({"model": model})
        encoder = XLNetEncoder(config)
        encoder.build()
        return encoder.get_weights()

    for one, other in zip(weights(), weights(), strict=True):
        np.testing.assert_array_equal(one, other)
