"""Log-likelihoods: normalised for any order, equal to a model that is shown nothing else."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.errors import ConfigError
from official.xlnet.inference.generation import fill_blanks, generate
from official.xlnet.inference.network.language_model_network import LanguageModelNetwork
from official.xlnet.inference.scoring import Scorer, score
from official.xlnet.tokenization.special_tokens import EOD_ID
from tests.helpers.small_language_model import NumberTokenizer, random_model


@pytest.fixture(scope="module")
def model():
    return random_model()


TOKENIZER = NumberTokenizer(31)


@pytest.fixture(scope="module")
def scorer(model):
    """The scorer of the model, which keeps its graphs."""
    return Scorer(model, TOKENIZER)


def random_ids(length, seed=0):
    return np.random.default_rng([7, seed]).integers(9, 31, length)


def as_text(ids):
    return " ".join(map(str, ids))


@pytest.mark.parametrize("order", itertools.permutations(range(3)))
def test_probabilities_of_all_sequences_sum_to_1(order):
    model = random_model(vocab_size=11)
    ids = np.array(list(itertools.product(range(11), repeat=3)), np.int32)
    network = LanguageModelNetwork(model, max_length=3)
    is_padding = tf.zeros(ids.shape, tf.bool)
    query = network.encoder.in_order(tf.constant(ids), is_padding, tf.constant([order])).vectors
    log_p = network.log_likelihoods(query, tf.constant(ids)).numpy().astype(np.float64).sum(axis=1)
    assert np.exp(log_p).sum() == pytest.approx(1, abs=1e-5)
    assert np.exp(log_p).max() > 3 / len(ids)  # No uniform distribution.


def test_tokens_after_a_target_never_change_its_score(scorer):
    ids = random_ids(17)
    changed = np.concatenate([ids[:9], random_ids(8, seed=1)])
    first, second = scorer([as_text(ids), as_text(changed)])
    np.testing.assert_allclose(first.log_likelihoods[:9], second.log_likelihoods[:9], atol=1e-5)
    assert np.abs(first.log_likelihoods[9:] - second.log_likelihoods[9:]).max() > 0.1


def test_random_is_the_mean_over_the_orders_that_are_drawn(model, scorer):
    texts = [random_ids(length, length) for length in (17, 6)]
    results = scorer([as_text(ids) for ids in texts], order="random", num_orders=3, seed=5)
    for number, (ids, result) in enumerate(zip(texts, results, strict=True)):
        wanted = []
        for draw in range(3):
            order = 1 + np.random.default_rng([5, number, draw]).permutation(len(ids))
            inputs = {
                "token_ids": tf.constant(ids[None], tf.int32),
                "order": tf.constant(order[None], tf.int32),
                "target_positions": tf.range(len(ids))[None],
            }
            logits = model(inputs)["logits"]
            wanted.append(np.array(tf.nn.log_softmax(logits[0]))[range(len(ids)), ids])
        np.testing.assert_allclose(result.log_likelihoods, np.mean(wanted, axis=0), atol=1e-5)
        assert np.std(wanted, axis=0).max() > 0.01  # Orders matter.


@pytest.mark.parametrize("order", ["left_to_right", "random", "pseudo"])
def test_long_text_is_read_in_windows_with_memory(model, scorer, order):
    ids = random_ids(23 + 7 + 3)  # A full window, one that advances by 7, one with 3 tokens.
    # The short text comes first in the list, and shares a batch with the long one.
    texts = [as_text(random_ids(4)), as_text(ids)]
    found = scorer(texts, order=order, seed=2)[1].log_likelihoods

    random = np.random.default_rng([2, 1, 0])
    memory, wanted = None, []
    for start, new in ((0, 0), (7, 23), (14, 30)):
        part, known = ids[start : start + 23], new - start
        orders = [np.arange(len(part))]
        if order == "random":
            drawn = 1 + random.permutation(len(part) - known)
            orders = [np.concatenate([np.zeros(known, int), drawn])]
        elif order == "pseudo":
            orders = [*np.eye(len(part), dtype=int)[known:], np.zeros(len(part), int)]
        targets = np.tile(range(known, len(part)), [len(orders), 1])
        inputs = {
            "token_ids": tf.constant(np.tile(part, [len(orders), 1]), tf.int32),
            "order": tf.constant(np.stack(orders), tf.int32),
            "target_positions": tf.constant(targets, tf.int32),
        }
        if memory is not None:
            inputs["memory"] = tf.repeat(memory, len(orders), axis=1)
            inputs["memory_length"] = tf.fill([len(orders)], min(start, 13))
        outputs = model(inputs)
        log_p = np.array(tf.nn.log_softmax(outputs["logits"]))
        picked = log_p[:, range(len(part) - known), part[known:]]
        wanted += np.diag(picked).tolist() if order == "pseudo" else picked[0].tolist()
        memory = outputs["memory"][:, -1:]
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def lane_of(ids, seq_len, advance, num_targets):
    """Windows of a lane that begins with `ids`, as `pretraining_dataset` gives them, one a batch.

    The first `num_targets` of the lane's tokens after the first one can be targets.
    """
    for number, start in enumerate(range(0, num_targets, advance)):
        position = start + np.arange(seq_len)
        can_be_target = (position <= num_targets) & (np.arange(seq_len) <= advance)
        yield {
            "token_ids": np.pad(ids, [0, seq_len])[None, position].astype(np.int32),
            "segment_ids": np.zeros([1, seq_len], np.int32),
            "can_be_target": can_be_target[None],
            "context_length": np.array([start], np.int32),
            "window_id": np.array([number], np.int64),
        }


@pytest.mark.parametrize(
    "settings",
    [
        {"mem_len": 0},
        {"mem_len": 41},
        {"attention_type": "uni", "untie_r": False, "seq_len": 29, "reuse_len": 11},
    ],
    ids=str,
)
def test_a_causal_model_scores_what_evaluate_counts(settings):
    model = random_model(kind="causal", **settings)
    data = model.config.data
    texts = [random_ids(length, length) for length in (5, data.reuse_len, 40)]
    results = score(model, [as_text(ids) for ids in texts], tokenizer=TOKENIZER)
    model.compile()
    for ids, result in zip(texts, results, strict=True):
        lane = list(lane_of([EOD_ID, *ids], data.seq_len, data.reuse_len, len(ids)))
        batches = tf.data.Dataset.from_generator(
            lambda lane=lane: iter(lane),
            output_signature={name: tf.TensorSpec(x.shape, x.dtype) for name, x in lane[0].items()},
        )
        loss = model.evaluate(batches, verbose=0, return_dict=True)["loss"]
        assert result.total == pytest.approx(-loss * len(ids), rel=1e-5)
    network = LanguageModelNetwork(model, max_length=19)
    ids = np.pad(texts[0], [14, 0])[None]  # Padded on the left, as an export pads.
    vectors = network.left_to_right(tf.constant(ids, tf.int32), tf.range(19)[None] < 14).vectors
    found = network.log_likelihoods(vectors, tf.constant(ids, tf.int32)).numpy()[0, 14:]
    np.testing.assert_allclose(found, results[0].log_likelihoods, atol=1e-5)


def test_left_to_right_is_what_evaluate_counts_of_such_a_permutation(model, scorer):
    model.compile()
    texts = [random_ids(19, seed) for seed in (0, 1)]
    results = scorer([as_text(ids) for ids in texts])
    for ids, result in zip(texts, results, strict=True):
        batch = {
            "token_ids": tf.constant(ids[None], tf.int32),
            "perm_mask": tf.constant(np.triu(np.ones([1, 19, 19], bool), 1)),
            "target_positions": tf.range(19)[None],
            "context_length": tf.zeros([1], tf.int32),
        }
        batches = tf.data.Dataset.from_tensors(batch)
        loss = model.evaluate(batches, verbose=0, return_dict=True)["loss"]
        assert result.total == pytest.approx(-loss * 19, rel=1e-5)
        assert result.pieces == [f"▁{i}" for i in ids]


@pytest.mark.parametrize(
    ("function", "argument", "options", "causal_can"),
    [
        (score, ["9 10"], {}, True),
        (score, ["9 10"], {"order": "random"}, False),
        (score, ["9 10"], {"order": "pseudo"}, False),
        (fill_blanks, "9 ____ 10", {}, False),
        (generate, ["9 10"], {}, True),
    ],
)
def test_what_a_model_was_not_trained_for_is_refused(function, argument, options, causal_can):
    with pytest.raises(ConfigError, match="expected one of permutation, causal, got 'denoisi"):
        function(random_model(kind="denoising"), argument, tokenizer=TOKENIZER, **options)
    if not causal_can:
        with pytest.raises(ConfigError, match=r"kind: expected permutation to .*'causal'"):
            function(random_model(kind="causal"), argument, tokenizer=TOKENIZER, **options)


@pytest.mark.parametrize("order", ["left_to_right", "random", "pseudo"])
def test_empty_texts_have_no_tokens(scorer, order):
    texts = ["9 10 11", "", "12", "  "]
    results = scorer(texts, order=order)
    assert [len(result.pieces) for result in results] == [3, 0, 1, 0]
    assert results[1].total == results[3].total == 0.0
    if order != "random":
        alone = scorer(["9 10 11", "12"], order=order)
        np.testing.assert_allclose(results[0].total, alone[0].total, rtol=1e-5)
        np.testing.assert_allclose(results[2].total, alone[1].total, rtol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"order": "backwards"}, "order: expected one of left_to_right"),
        ({"order": "random", "num_orders": 0}, "num_orders: expected at least 1"),
        ({"order": "random", "seed": "x"}, "seed: expected an integer, got str 'x'"),
    ],
)
def test_wrong_input_is_named(model, wrong, message):
    with pytest.raises(ConfigError, match=message):
        score(model, ["9"], tokenizer=TOKENIZER, **wrong)
