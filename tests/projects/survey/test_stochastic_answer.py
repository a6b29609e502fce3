"""The stochastic answer network against its equations in NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.heads import create_head
from official.xlnet.tokenization.special_tokens import CLS_ID, SEP_ID
from tests.helpers.task_corpora import task_config
from tests.helpers.tiny import randomize

UNITS, TOKENS, WIDTH, CLASSES, STEPS = 5, 17, 26, 3, 7


def make_head(**task):
    task = {"answer_module": "san", "answer_steps": STEPS, "labels": ("a", "b", "c"), **task}
    head = create_head(task_config(name="classification", **task))
    head.build([None, None, None, WIDTH])
    randomize(head.variables, seed=2, scale=0.4)
    return head


def make_inputs(sequences=1, seed=0):
    """Texts A | SEP | B | SEP | CLS of random lengths, padded on the left."""
    rng = np.random.default_rng(seed)
    shape = UNITS, sequences, TOKENS
    token_ids, segments = rng.integers(9, 211, shape), np.full(shape, 4)
    token_ids[..., -1], segments[..., -1] = CLS_ID, 2
    for u, s in np.ndindex(UNITS, sequences):
        num_a, num_b = rng.integers(1, 7), rng.integers(1, 7)
        start = TOKENS - num_a - num_b - 3
        segments[u, s, start : start + num_a + 1] = 0
        segments[u, s, start + num_a + 1 : -1] = 1
        token_ids[u, s, [start + num_a, -2]] = SEP_ID
    inputs = {
        "token_ids": token_ids.astype(np.int32),
        "segment_ids": segments.astype(np.int32),
        "is_padding": segments == 4,
    }
    return rng.standard_normal((*shape, WIDTH)).astype(np.float32), inputs


def softmax(x):
    p = np.exp(x - x.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(head, x, state):
    """Cho et al., 2014, with the reset gate after the product, as in cuDNN."""
    kernel, recurrent, bias = (np.array(w, float) for w in head.cell.get_weights())
    x_z, x_r, x_h = np.split(x @ kernel + bias[0], 3)
    s_z, s_r, s_h = np.split(state @ recurrent + bias[1], 3)
    z, r = sigmoid(x_z + s_z), sigmoid(x_r + s_r)
    return z * state + (1 - z) * np.tanh(x_h + r * s_h)


def by_hand(head, content, inputs):
    """Probabilities of every step, float64 [U, K, C]."""
    w_1, w_2 = head.hypothesis_kernel.numpy(), head.premise_kernel.numpy().astype(float)
    w_3, b = (x.numpy().astype(float) for x in (head.logits.kernel, head.logits.bias))
    results = []
    for u in range(UNITS):
        is_word = inputs["token_ids"][u] >= 9
        premise = content[u][is_word & (inputs["segment_ids"][u] == 0)].astype(float)
        hypothesis = content[u][is_word & (inputs["segment_ids"][u] == 1)].astype(float)
        state = softmax(hypothesis @ w_1) @ hypothesis
        steps = []
        for _ in range(STEPS):
            read = softmax(premise @ w_2 @ state) @ premise
            state = gru(head, read, state)
            features = np.concatenate([state, read, np.abs(state - read), state * read])
            steps.append(softmax(features @ w_3 + b))
        results.append(steps)
    return np.array(results)


@pytest.mark.parametrize("sequences", [1, 3])
def test_probabilities_are_the_mean_over_the_steps(sequences):
    head = make_head()
    content, inputs = make_inputs(sequences)
    logits = head(content, inputs)["logits"].numpy()
    wanted = by_hand(head, content, inputs).mean(axis=1)
    np.testing.assert_allclose(np.exp(logits), wanted, rtol=2e-4)
    np.testing.assert_allclose(np.exp(logits).sum(-1), 1, rtol=1e-5)


def test_training_averages_the_steps_that_dropout_keeps():
    """Each unit has a mean over some subset of its steps; all subsets but the empty one occur."""
    head = make_head(answer_dropout=0.9, answer_steps=2)
    content, inputs = make_inputs()
    steps = by_hand(head, content, inputs)[:, :2]
    subsets = [steps[:, 0], steps[:, 1], steps.mean(axis=1)]
    seen = np.zeros(len(subsets))
    for seed in range(30):
        p = np.exp(head(content, inputs, tf.constant([seed, 1]))["logits"])
        matches = [np.abs(p - subset).max(-1) < 1e-4 for subset in subsets]
        assert np.all(np.sum(matches, axis=0) == 1)
        seen += np.sum(matches, axis=1)
    # Kept: only the first 0.09, only the second 0.09, both 0.01, none 0.81, which keeps both.
    np.testing.assert_allclose(seen / seen.sum(), [0.09, 0.09, 0.82], atol=0.08)


def test_a_text_that_is_all_cut_off_gives_finite_values_and_gradients():
    head = make_head()
    content, inputs = make_inputs()
    inputs["is_padding"][1] = True
    content = tf.constant(content)
    with tf.GradientTape() as tape:
        tape.watch(content)
        loss = head.loss(head(content, inputs, tf.constant([1, 2])), {"label": tf.zeros([UNITS])})
    assert np.all(np.isfinite(loss)) and np.all(np.isfinite(tape.gradient(loss, content)))
