"""The inference network equals the Keras layers, whatever the configuration and the input."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.inference.network.inference_encoder import InferenceEncoder, last_positions
from tests.helpers.tiny import random_inputs, tiny_encoder

CLOSE = {"atol": 1e-5, "rtol": 1e-5}


class Case:
    """An encoder of random shape, its form for inference, and random inputs with memory."""

    def __init__(self, seed):
        rng = np.random.default_rng([31, seed])
        # Not one head: oneDNN of TensorFlow 2.20 writes out of bounds in a matmul that broadcasts
        # [B, 1, P, H] with [1, 1, H, R] (tensorflow#117700).
        heads, layers = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        self.tokens = int(rng.integers(4, 23))
        self.memory = int(rng.choice([0, 3, 11, 29]))
        self.reuse = int(rng.choice([0, 1, self.tokens // 2]))
        settings = {
            "num_layers": layers,
            "num_heads": heads,
            "d_model": 2 * heads * int(rng.integers(2, 7)),
            "d_inner": int(rng.choice([13, 31, 1024])),  # The last one is stored with more rows.
            "untie_r": bool(rng.integers(2)),
            "clamp_len": int(rng.choice([0, 5])),
            "activation": str(rng.choice(["gelu", "gelu_exact", "relu"])),
            "attention_type": str(rng.choice(["bi", "uni"])),
            "mem_len": self.memory,
            "depth": ("stacked", "stacked", "shared", "adaptive")[seed % 4],
        }
        self.encoder = tiny_encoder(seed, **settings)
        self.encoder.reuse_len = self.reuse
        max_length = self.tokens + int(rng.integers(0, 7))
        self.network = InferenceEncoder(self.encoder, max_length, with_memory=True)
        self.inputs = random_inputs(
            seed,
            batch=3,
            tokens=self.tokens,
            targets=1,
            memory=self.memory,
            layers=layers,
            width=settings["d_model"],
        )
        number = rng.integers(1, self.tokens + 1, 3)
        on_the_right = rng.integers(2)
        is_padding = np.arange(self.tokens) < self.tokens - number[:, None]
        self.inputs["is_padding"] = is_padding[:, ::-1] if on_the_right else is_padding
        self.inputs["order"] = rng.integers(0, 9, (3, self.tokens)).astype(np.int32)
        if self.memory:
            self.inputs["memory_length"] = rng.integers(0, self.memory + 1, 3).astype(np.int32)

    @property
    def real(self):
        return ~self.inputs["is_padding"]

    def of(self, *names):
        names = [*names, "token_ids", "is_padding"]
        names += ["memory", "memory_length"] if self.memory else []
        return {name: tf.constant(self.inputs[name]) for name in names}


@pytest.fixture(
    scope="module",
    params=[*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 8))],
)
def case(request):
    return Case(request.param)


def assert_close(found, expected, where=slice(None)):
    np.testing.assert_allclose(np.array(found)[where], np.array(expected)[where], **CLOSE)


def check_memory(case, memory, expected):
    if not case.memory:
        assert memory is None
        return
    # Vectors of padding, which the next window does not see, may differ.
    is_real = np.ones([3, case.memory], bool)
    reused = case.real[:, : case.reuse or None]
    newest = min(reused.shape[1], case.memory)
    is_real[:, case.memory - newest :] = reused[:, reused.shape[1] - newest :]
    assert memory.shape == expected["memory"].shape
    assert_close(memory, expected["memory"], (slice(None), is_real))


def test_content_stream(case):
    inputs = case.of("segment_ids")
    expected = case.encoder(inputs)
    vectors, memory = case.network(**inputs)
    assert_close(vectors, expected["content"], case.real)
    check_memory(case, memory, expected)
    last, _ = case.network(**inputs, last_only=True)
    assert_close(last[:, 0], expected["content"][:, -1], case.real[:, -1])


def test_query_stream_in_any_order(case):
    inputs = case.of("order")
    positions = tf.tile(tf.range(case.tokens)[None], [3, 1])
    expected = case.encoder({**inputs, "target_positions": positions})
    vectors, memory = case.network.in_order(**inputs)
    assert_close(vectors, expected["query"], case.real)
    check_memory(case, memory, expected)
    last_three = last_positions(3, case.tokens)
    vectors, _ = case.network.in_order(**inputs, target_positions=last_three)
    assert_close(vectors, expected["query"][:, -3:], case.real[:, -3:])
    # Targets that differ between rows, each given all tokens before it in the order.
    inputs["target_positions"] = tf.constant(
        np.random.default_rng(1).integers(0, case.tokens, [3, 2]), tf.int32
    )
    assert_close(case.network.in_order(**inputs)[0], case.encoder(inputs)["query"])
    # One order for all rows.
    inputs |= {"order": positions, "target_positions": positions}
    expected = case.encoder(inputs)["query"]
    inputs |= {"order": positions[:1], "target_positions": None}
    assert_close(case.network.in_order(**inputs)[0], expected, case.real)
