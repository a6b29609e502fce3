"""Heads that start by attending to one neighbor each."""

import numpy as np
import pytest

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.modeling.layers.relative_position import sinusoids
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.modeling.ops.neighbors import neighbor_bias, neighbor_kernel

DISTANCES = (1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6)  # Query position minus key position.


@pytest.mark.parametrize(
    ("width", "num_heads"), [(128, 4), (256, 4), (768, 12), (1024, 16), (44, 2), (30, 3)]
)
def test_score_is_greatest_at_the_neighbor_of_the_head(width, num_heads):
    d_head, num_tokens = width // num_heads, 61
    kernel = neighbor_kernel(0.0, [width, num_heads, d_head]).numpy()
    bias = neighbor_bias(0.0, width, [num_heads, d_head]).numpy()
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
