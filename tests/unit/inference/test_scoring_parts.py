"""Log-likelihoods of parts of texts: sums over all strings, explicit masks, chains of masks."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.errors import ConfigError, DataError
from official.xlnet.inference.scoring import Scorer
from official.xlnet.tokenization.special_tokens import MASK_ID
from tests.helpers.package.of_projects import rows, slow_rows
from tests.helpers.small_language_model import NumberTokenizer, random_model

# Their graphs are those of test_scoring.py.
pytestmark = pytest.mark.usefixtures("eager")
TOKENIZER = NumberTokenizer(31)
IDS = [11, 30, 17, 9, 25, 28, 13]
OF_PROJECTS = rows("DENOISING_NETWORKS")


@functools.cache
def model_of(kind="permutation", **settings):
    return random_model(kind=kind, **settings)


@functools.cache
def scorer(kind="permutation", **settings):
    vocab_size = settings.get("vocab_size", 31)
    return Scorer(model_of(kind, **settings), NumberTokenizer(vocab_size))


def as_text(ids):
    return " ".join(map(str, ids))


def spans(ids, positions):
    """Spans of tokens, in characters, one for each."""
    starts = np.cumsum([0, *(len(str(i)) + 1 for i in ids)])
    return [(int(starts[p]), int(starts[p]) + len(str(ids[p]))) for p in positions]


def scored(scorer, ids, given, targets, *arguments, **options):
    """The score of the tokens at `targets`, those at `given` being given."""
    of_ids = {"given": [spans(ids, given)], "targets": [spans(ids, targets)]}
    return scorer.score([as_text(ids)], *arguments, **of_ids, **options)[0]


@pytest.mark.parametrize(
    ("settings", "given", "targets"),
    [
        ({}, [0, 5], [2, 3]),
        pytest.param({}, [], [1, 6], marks=pytest.mark.slow),
        ({"kind": "causal"}, [0, 1], [2, 3]),
        ({"kind": "denoising"}, [0, 5], [2, 3]),
        *(
            pytest.param({"kind": "denoising", **network}, [3], [5, 1], marks=pytest.mark.slow)
            for network in OF_PROJECTS
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("order", ["left_to_right", "random"])
def test_probabilities_of_all_strings_at_the_targets_sum_to_1(settings, given, targets, order):
    """Whatever stands where nothing is given: it is hidden."""
    if settings.get("kind") == "causal" and order == "random":
        return  # It reads from left to right.
    model = scorer(vocab_size=13, **settings)
    texts, random = [], np.random.default_rng(3)
    for first in range(13):
        for second in range(13):
            ids = [i % 13 if n in given else random.integers(13) for n, i in enumerate(IDS)]
            ids[targets[0]], ids[targets[1]] = first, second
            texts.append(ids)
    results = model.score(
        [as_text(ids) for ids in texts],
        order,
        given=[spans(ids, given) for ids in texts],
        targets=[spans(ids, targets) for ids in texts],
    )
    assert sum(np.exp(result.total) for result in results) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("whole_given", [False, True])
@pytest.mark.parametrize("order", ["left_to_right", "random", "pseudo"])
def test_parts_are_those_of_the_network_with_explicit_masks(order, whole_given):
    given, targets, hidden = [1, 5], [2, 3, 6], [0, 4]
    uniform = np.random.default_rng([7, 0]).random(len(IDS))
    key = (lambda p: uniform[p]) if order == "random" else (lambda p: p)
    given, targets = sorted(given, key=key), sorted(targets, key=key)
    expected = {}
    for number, target in enumerate(targets):
        may_not_see = np.ones([len(IDS), len(IDS)], bool)  # Row: who looks; column: at what.
        for place, position in enumerate(given):
            may_not_see[position, given if whole_given else given[: place + 1]] = False
        before = targets[:number] if order != "pseudo" else [p for p in targets if p != target]
        for place, position in enumerate(before):
            may_not_see[position, [*given, *before[: place + 1]]] = False
        if order == "pseudo":
            may_not_see[np.ix_([*given, *before], [*given, *before])] = False
        may_not_see[target, [*given, *before]] = False
        inputs = {
            "token_ids": tf.constant([IDS]),
            "perm_mask": tf.constant(may_not_see[None]),
            "target_positions": tf.constant([[target]]),
        }
        log_p = tf.nn.log_softmax(model_of("permutation")(inputs)["logits"][0, 0])
        expected[target] = float(log_p[IDS[target]])
    options = {"seed": 7, "whole_given": whole_given}
    found = scored(scorer(), IDS, given, targets, order, **options)
    assert found.pieces == [f"▁{IDS[target]}" for target in sorted(targets)]
    assert found.offsets == spans(IDS, sorted(targets))
    wanted = [expected[target] for target in sorted(targets)]
    np.testing.assert_allclose(found.log_likelihoods, wanted, atol=1e-5)
    changed = [12 if n in hidden else i for n, i in enumerate(IDS)]
    again = scored(scorer(), changed, given, targets, order, **options)
    np.testing.assert_allclose(again.log_likelihoods, wanted, atol=1e-5)


@pytest.mark.parametrize("network", [{}, *slow_rows("DENOISING_NETWORKS")], ids=str)
@pytest.mark.parametrize("order", ["left_to_right", "random", "pseudo"])
def test_a_denoising_model_masks_predicts_and_puts_in(order, network):
    given, targets = [1, 5], [2, 3, 6]
    uniform = np.random.default_rng([4, 0]).random(len(IDS))
    chain = sorted(targets, key=lambda p: uniform[p] if order == "random" else p)
    model, expected = model_of("denoising", **network), {}
    for number, target in enumerate(chain):
        known = {*given, *chain[:number]} if order != "pseudo" else {*given, *targets} - {target}
        ids = [i if n in known else MASK_ID for n, i in enumerate(IDS)]
        inputs = {"token_ids": tf.constant([ids]), "content_positions": tf.constant([[target]])}
        expected[target] = float(tf.nn.log_softmax(model(inputs)["logits"][0, 0])[IDS[target]])
    found = scored(scorer("denoising", **network), IDS, given, targets, order, seed=4)
    np.testing.assert_allclose(found.log_likelihoods, [expected[p] for p in targets], atol=1e-5)


@pytest.mark.parametrize(
    "settings", [{}, {"kind": "causal"}, {"kind": "denoising", "mem_len": 0}], ids=str
)
@pytest.mark.parametrize("length", [5, 40])
def test_a_context_and_what_follows_multiply_to_the_whole(settings, length):
    """Also over several windows: p(A) p(B | A) = p(A B), in the order (A, B)."""
    ids = np.random.default_rng(0).integers(9, 31, length).tolist()
    first, second = range(length // 2), range(length // 2, length)
    whole = scorer(**settings).score([as_text(ids)])[0].total
    a = scored(scorer(**settings), ids, [], first).total
    b_given_a = scored(scorer(**settings), ids, first, second).total
    assert a + b_given_a == pytest.approx(whole, abs=1e-4)
    if not settings and length == 5:  # In the other order, another model of the same text.
        b = scored(scorer(), ids, [], second).total
        assert abs(b + scored(scorer(), ids, second, first).total - whole) > 0.01


def test_random_orders_depend_on_seed_draw_and_position_alone():
    texts = [as_text(IDS), as_text([9, *IDS[1:]]), as_text(IDS[:5])]
    together = scorer().score(texts, "random", 3, 5)
    for text, result in zip(texts, together, strict=True):
        (alone,) = scorer().score([text], "random", 3, 5)
        np.testing.assert_allclose(result.order_totals, alone.order_totals, atol=1e-5)
        assert result.total == pytest.approx(alone.order_totals.mean(), abs=1e-6)
    assert scorer().score(texts[:1], "random", 3, 6)[0].total != together[0].total


def test_spans_find_the_pieces_of_their_characters():
    class Tokens(NumberTokenizer):
        def encode_with_offsets(self, text):  # ▁The ▁ ‹the space alone› un fit .
            return [9, 10, 11, 12, 13], [(0, 3), (4, 4), (4, 6), (6, 9), (9, 10)]

    model = Scorer(random_model(), Tokens(31))
    for span, positions in {(4, 10): [1, 2, 3, 4], (5, 7): [2, 3], (3, 5): [1, 2]}.items():
        (found,) = model.score(["The unfit."], targets=[[span]])
        assert found.pieces == [f"▁{9 + p}" for p in positions]


@pytest.mark.parametrize(
    ("settings", "given", "targets", "message"),
    [
        ({}, [[(0, 99)]], None, "given: expected spans .* of 19 characters, got .0, 99."),
        ({}, [[(3, 3)]], None, "given: expected spans"),
        ({}, [[(0, 5)]], [[(4, 8)]], "given spans and targets apart"),
        ({}, [[], []], None, "given: expected a list of spans for each of 1 texts, got 2"),
        ({"kind": "causal"}, [[(6, 8)]], None, "nothing after them, for a causal model"),
        ({"kind": "causal"}, [[]], [[(6, 8)]], "for a causal model, got other spans"),
        ({"seq_len": 9, "reuse_len": 0}, [[(20, 22)]], None, "in a text of several windows"),
    ],
)
def test_wrong_spans_are_named(settings, given, targets, message):
    with pytest.raises((ConfigError, DataError), match=message):
        text = as_text(IDS * (3 if settings.get("seq_len") else 1))
        scorer(**settings).score([text], given=given, targets=targets)
