"""Log-likelihoods against the layers, in every order, and against what `evaluate` counts."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.errors import ConfigError
from official.xlnet.inference.generation import fill_blanks, generate
from official.xlnet.inference.network.language_model_network import LanguageModelNetwork
from official.xlnet.inference.scoring import Scorer, score
from official.xlnet.tokenization.special_tokens import EOD_ID
from tests.helpers.package.of_projects import slow_rows
from tests.helpers.small_language_model import NumberTokenizer, random_model


@pytest.fixture(scope="module")
def model():
    return random_model()


TOKENIZER = NumberTokenizer(31)


@pytest.mark.usefixtures("eager")
def test_windows_are_counted_for_progress(model):
    scorer = Scorer(model, TOKENIZER)
    for number, order in enumerate(("left_to_right", "random", "pseudo"), start=1):
        scorer([as_text(random_ids(33))], order)
        assert scorer.num_windows == 3 * number, order


def random_ids(length, seed=0):
    return np.random.default_rng([7, seed]).integers(9, 31, length)


def as_text(ids):
    return " ".join(map(str, ids))


def by_the_layers(model, ids, order, uniform):
    """Log-likelihoods of up to 33 tokens, read in windows of 23 that advance by 7, with memory."""
    memory, found = None, []
    for start, new in ((0, 0), (7, 23), (14, 30)):
        part, known = ids[start : start + 23], new - start
        if known >= len(part):
            break
        orders = [np.arange(len(part))]
        if order == "random":
            drawn = np.argsort(np.argsort(uniform[new : start + len(part)]))
            orders = [np.concatenate([np.zeros(known, int), 1 + drawn])]
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
        found += np.diag(picked).tolist() if order == "pseudo" else picked[0].tolist()
        memory = outputs["memory"][:, -1:]
    return found


@pytest.mark.parametrize(
    "order",
    ["random", *(pytest.param(x, marks=pytest.mark.slow) for x in ("left_to_right", "pseudo"))],
)
def test_log_likelihoods_are_those_of_the_layers(model, order):
    """Of no token, of one window, and of three; the mean over the orders that are drawn."""
    texts, num_orders = [random_ids(length, length) for length in (0, 4, 33)], 2
    results = score(model, [*map(as_text, texts)], order, num_orders, seed=2, tokenizer=TOKENIZER)
    for ids, result in zip(texts, results, strict=True):
        draws = [
            by_the_layers(model, ids, order, np.random.default_rng([2, draw]).random(40))
            for draw in range(num_orders if order == "random" else 1)
        ]
        np.testing.assert_allclose(result.log_likelihoods, np.mean(draws, axis=0), atol=1e-5)
        assert result.total == pytest.approx(np.mean(draws, axis=0).sum(), abs=1e-4)
        assert result.pieces == [f"▁{i}" for i in ids]
        if order == "random":
            error = np.std(np.sum(draws, axis=1), ddof=1) / np.sqrt(num_orders)
            assert result.standard_error == pytest.approx(error, abs=1e-4)
        else:
            assert result.standard_error is None
    assert (np.std(draws, axis=0).max() > 0.01) == (order == "random")  # Orders matter.


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


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"mem_len": 0}, marks=pytest.mark.slow),
        {"mem_len": 41},
        pytest.param(
            {"attention_type": "uni", "untie_r": False, "seq_len": 29, "reuse_len": 11},
            marks=pytest.mark.slow,
        ),
        *slow_rows("CAUSAL_NETWORKS"),
    ],
    ids=str,
)
def test_a_causal_model_scores_what_evaluate_counts(settings):
    model = random_model(kind="causal", **settings)
    data = model.config.data
    texts = [random_ids(length, length) for length in (5, data.reuse_len, 40)]
    results = score(model, [as_text(ids) for ids in texts], tokenizer=TOKENIZER)
    model.compile(run_eagerly=True)
    for ids, result in zip(texts, results, strict=True):
        lane = list(lane_of([EOD_ID, *ids], data.seq_len, data.reuse_len, len(ids)))
        batches = tf.data.Dataset.from_generator(
            lambda lane=lane: iter(lane),
            output_signature={name: tf.TensorSpec(x.shape, x.dtype) for name, x in lane[0].items()},
        )
        loss = model.evaluate(batches, verbose=0, return_dict=True)["loss"]
        assert result.total == pytest.approx(-loss * len(ids), rel=1e-5)
    if model.config.model.network != "xlnet":
        return  # It has no export.
    network = LanguageModelNetwork(model, max_length=19)
    ids = np.pad(texts[0], [14, 0])[None]  # Padded on the left, as an export pads.
    vectors, _ = network.left_to_right(tf.constant(ids, tf.int32), tf.range(19)[None] < 14)
    found = network.log_likelihoods(vectors, tf.constant(ids, tf.int32)).numpy()[0, 14:]
    np.testing.assert_allclose(found, results[0].log_likelihoods, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "argument", "options", "kinds"),
    [
        (score, ["9 10"], {}, "permutation causal denoising"),
        (score, ["9 10"], {"order": "random"}, "permutation denoising"),
        (score, ["9 10"], {"order": "pseudo"}, "permutation denoising"),
        (fill_blanks, "9 ____ 10", {}, "permutation"),
        (generate, ["9 10"], {}, "permutation causal"),
    ],
)
def test_what_a_model_was_not_trained_for_is_refused(function, argument, options, kinds):
    for kind in {"causal", "denoising"} - set(kinds.split()):
        with pytest.raises(ConfigError, match=f"kind.*: expected .*permutation.*, got '{kind}'"):
            function(random_model(kind=kind), argument, tokenizer=TOKENIZER, **options)


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
