"""Every form of attention equals the reference: values, and gradients of inputs and weights."""

from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.kernels import attention as kernels_attention
from official.xlnet.modeling.kernels import relative_shift
from official.xlnet.modeling.kernels.attention import with_fast_forms
from official.xlnet.modeling.kernels.device_forms import DEVICES, built_for
from official.xlnet.modeling.kernels.key_value_cache import cached_attention, new_cache
from official.xlnet.modeling.layers.attention import attention as reference
from official.xlnet.modeling.layers.relative_position import RelativePositionEncoding, sinusoids
from official.xlnet.modeling.layers.two_stream_mask import TwoStreamAttentionMask
from official.xlnet.modeling.ops.attention_weights import AttentionWeights
from official.xlnet.modeling.ops.visibility import OrderedRows, TwoStreamMask, last_rows
from tests.helpers.compare import assert_all_close

BATCH = 3
CLOSE = {"atol": 3e-5, "rtol": 1e-4}
# Of `with_fast_forms`, where no case is left to the reference.
unexpected = mock.Mock(side_effect=AssertionError("expected a fast form, got the reference"))


class Case:
    """Random sizes, weights, inputs and settings of attention."""

    def __init__(self, seed, memory=True):
        rng = self.rng = np.random.default_rng([17, seed])
        self.heads, self.d_head = int(rng.integers(1, 4)), int(rng.integers(2, 7))
        self.width = 2 * int(rng.integers(3, 9))
        self.tokens = int(rng.choice([1, 2, 5, 11, 13, 19]))
        self.memory = int(rng.choice([0, 3, 7])) if memory else 0
        self.targets = int(rng.integers(0, 6))  # Now and then more than there are tokens.
        self.block = int(rng.choice([2, 4, 5, 256]))
        # Attention may be wanted for the last rows of the content stream only.
        self.wanted = int(rng.choice([0, 1, self.tokens, self.tokens, self.tokens]))
        if not self.targets:
            self.wanted = max(self.wanted, 1)
        self.clamp_len = int(rng.choice([0, 0, 4]))
        self.settings = {
            "causal": bool(rng.integers(2)),
            "dropout_rate": float(rng.choice([0.0, 0.3])),
            "dropout_seed": [None, tf.constant(rng.integers(-99, 99, 2), tf.int32)][
                rng.integers(2)
            ],
        }
        self.recompute = seed % 4 == 0  # Seed 4 has dropout, seed 0 has not.
        shape = [self.width, self.heads, self.d_head]
        bias = shape[1:]
        shapes = [shape] * 5 + [bias] * 3 + [[2, *bias]]
        self.weights = AttentionWeights(*(self.normal(*each) / 2 for each in shapes))
        self.hidden = self.normal(BATCH, self.tokens + self.targets, self.width)
        self.mask_inputs = self.random_mask_inputs()
        self.remembered = self.is_reversed = None
        if self.memory:
            self.remembered = self.normal(BATCH, self.memory, self.width)
        if rng.integers(2):
            self.is_reversed = tf.constant([True, False, True])

    def normal(self, *shape):
        return tf.constant(self.rng.standard_normal(shape), tf.float32)

    def random_mask_inputs(self):
        rng, tokens = self.rng, self.tokens
        inputs = {"segment_ids": rng.integers(0, 3, [BATCH, tokens])}
        visible = rng.choice(["all", "order", "perm_mask"])
        if visible == "order":
            inputs["order"] = rng.integers(0, 4, [BATCH, tokens])
        if visible == "perm_mask":
            inputs["perm_mask"] = rng.random([BATCH, tokens, tokens]) < 0.4
        if rng.integers(2):  # Some rows may attend to no key at all.
            inputs["is_padding"] = rng.random([BATCH, tokens]) < 0.3
        if self.memory and rng.integers(2):
            inputs["memory_length"] = rng.integers(0, self.memory + 1, BATCH)
        if self.targets:
            last = np.arange(tokens - self.targets, tokens)[None]  # Known to be consecutive.
            anywhere = rng.integers(0, tokens, [rng.choice([1, BATCH]), self.targets])
            is_last = rng.integers(3) == 0 and self.targets <= tokens
            inputs["target_positions"] = last if is_last else anywhere
        return {name: tf.constant(value) for name, value in inputs.items()}

    @property
    def content(self):
        return self.hidden[:, : self.tokens]

    @property
    def mask(self):
        mask = TwoStreamAttentionMask()(self.content, memory=self.remembered, **self.mask_inputs)
        return mask._replace(content=last_rows(mask.content, self.wanted))

    def encoding(self, dtype="float32"):
        layer = RelativePositionEncoding(self.clamp_len, dtype=dtype)
        return layer(self.content, memory=self.remembered)

    def gradients(self, attention, encoding, **settings):
        """The output of `attention`, and gradients of hidden states and all weights."""
        run = self.function(attention, encoding, **settings)
        # Kernels are compiled in graphs only, which takes longer than all else here.
        run = tf.function(run) if self.rng.integers(3) == 0 else run
        return run(*self.tensors)

    @property
    def tensors(self):
        return self.hidden, self.remembered, self.weights

    def cast_to(self, dtype):
        self.hidden, self.remembered, self.weights = tf.nest.map_structure(
            lambda x: None if x is None else tf.cast(x, dtype), self.tensors
        )

    def function(self, attention, encoding, **settings):
        """A function of hidden states, memory and weights that returns what `gradients` does."""
        shape = [BATCH, self.wanted + self.targets, self.width]
        upstream = tf.random.stateless_normal(shape, [1, 2])

        def run(hidden_states, memory, weights):
            with tf.GradientTape() as tape:
                tape.watch([hidden_states, *weights])
                output, _ = attention(
                    hidden_states,
                    self.mask,
                    encoding,
                    weights,
                    memory,
                    self.is_reversed,
                    **self.settings,
                    **settings,
                )
            of_output = tf.cast(upstream, output.dtype)
            return [output, *tape.gradient(output, [hidden_states, *weights], of_output)]

        return run


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_in_16_bit_a_compiled_step_of_a_gpu_is_near_the_reference(seed):
    """Probabilities and their gradients are rounded there; each array is as near as on a CPU."""
    case = Case(seed)
    with built_for("CPU"):
        wanted = case.gradients(reference, case.encoding())
    case.cast_to(tf.bfloat16)

    def errors(device):
        with built_for(device):
            run = case.function(with_fast_forms(unexpected), case.encoding("bfloat16"))
            found = tf.function(run, jit_compile=True)(*case.tensors)
        pairs = zip(found, wanted, strict=True)
        return [np.linalg.norm(tf.cast(x, tf.float32) - y) for x, y in pairs]

    names = "output", "hidden", *case.weights._fields
    for name, value, gpu, cpu in zip(names, wanted, errors("GPU"), errors("CPU"), strict=True):
        assert gpu < max(0.02 * np.linalg.norm(value), 3 * cpu), (name, gpu, cpu)


@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 11))]
)
def test_values_and_gradients_of_every_form(seed, monkeypatch):
    case = Case(seed)
    monkeypatch.setattr(relative_shift, "BLOCK_SIZE", case.block)
    monkeypatch.setattr(relative_shift, "ACCELERATOR_BLOCK_SIZE", case.block)
    with built_for("CPU"):
        wanted = case.gradients(reference, case.encoding())
    assert all(np.isfinite(value).all() for value in wanted)
    for device in DEVICES:
        with built_for(device):
            fast = with_fast_forms(unexpected)
            found = case.gradients(fast, case.encoding(), recompute=case.recompute)
        assert_all_close(found, wanted, **CLOSE)
    # The reference, of sizes that are unknown, computes again if it is asked to, with dropout.
    monkeypatch.setattr(kernels_attention, "_has_static_sizes", lambda mask: False)
    counted = mock.Mock(wraps=reference)
    found = case.gradients(with_fast_forms(counted), case.encoding(), recompute=case.recompute)
    is_dropped = case.settings["dropout_seed"] is not None
    assert counted.call_count == 1 + (case.recompute and is_dropped)
    assert_all_close(found, wanted, **CLOSE)


@pytest.mark.parametrize("seed", range(4))
def test_cached_form(seed):
    """Tokens after the first few, and targets, as one step of decoding after another."""
    case = Case(seed, memory=False)
    case.wanted = case.tokens
    case.mask_inputs.pop("perm_mask", None)
    case.is_reversed, case.settings["dropout_seed"] = None, None
    table = sinusoids(case.tokens, 0, case.width)
    mask, causal = case.mask, case.settings["causal"]
    wanted, _ = reference(case.hidden, mask, table, case.weights, causal=causal)
    first = case.tokens // 2
    cache = new_cache(case.content[:, :first], case.tokens, table, case.weights)
    no_rows = OrderedRows(*(x[:, :0] for x in mask.query))
    for number in range(first, case.tokens):
        row = OrderedRows(*(x[:, number : number + 1] for x in mask.content))
        is_last = number == case.tokens - 1  # By then, all keys are written.
        query = mask.query if is_last else no_rows
        rows = case.hidden[:, number : None if is_last else number + 1]
        found, cache = cached_attention(
            rows, TwoStreamMask(row, query, mask.keys), cache, case.weights, causal
        )
    np.testing.assert_allclose(found, wanted[:, case.tokens - 1 :], **CLOSE)


@pytest.mark.parametrize("seed", range(6))
def test_the_reference_takes_the_rest(seed):
    """Attention probabilities, float64, and sizes that are unknown when the graph is built."""
    case = Case(seed)
    case.settings["dropout_seed"], case.wanted = None, case.tokens
    rest = case.is_reversed, case.settings["causal"]
    hidden, memory, weights = case.tensors
    wanted = reference(hidden, case.mask, case.encoding(), weights, memory, *rest)
    assert wanted[1].dtype == tf.float32
    counted = mock.Mock(wraps=reference)
    attention = with_fast_forms(counted)
    for device in DEVICES:
        with built_for(device):
            given = hidden, case.mask, case.encoding(), weights, memory, *rest
            found = attention(*given, return_probabilities=True)
        assert_all_close(found, wanted, **CLOSE)

    @tf.function(input_signature=[tf.TensorSpec([BATCH, None, case.width]) for _ in range(2)])
    def of_unknown_sizes(hidden_states, content):
        mask = TwoStreamAttentionMask()(content, memory=memory, **case.mask_inputs)
        encoding = RelativePositionEncoding(case.clamp_len)(content, memory=memory)
        return attention(hidden_states, mask, encoding, weights, memory, *rest)[0]

    np.testing.assert_allclose(of_unknown_sizes(hidden, case.content), wanted[0], **CLOSE)
    mask, encoding = case.mask, case.encoding()
    case.cast_to(tf.float64)
    hidden, memory, weights = case.tensors
    exact, _ = attention(hidden, mask, encoding, weights, memory, *rest)
    assert exact.dtype == tf.float64
    np.testing.assert_allclose(exact, wanted[0], **CLOSE)
    assert counted.call_count == len(DEVICES) + 2
