"""Entropies against all tokens in the place of one, information against passes of the layers."""

import json

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from scipy.special import log_softmax

from official.xlnet import cli
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.inference.scoring import Scorer
from official.xlnet.projects.any_order.words import words_of
from official.xlnet.projects.any_order.words.information import mutual_information
from official.xlnet.tokenization.special_tokens import MASK_ID
from tests.helpers.small_language_model import NumberTokenizer, random_model

KINDS = ["permutation", "causal", "denoising"]
TEXTS = ["7 3 9 8 4", " ".join(map(str, np.arange(31) % 10))]  # One window, and several.


@pytest.fixture(scope="module")
def models():
    return {kind: random_model(kind=kind, vocab_size=10) for kind in KINDS}


@pytest.mark.parametrize(
    ("kind", "orders"),
    [
        pytest.param("permutation", ["left_to_right", "random", "pseudo"], marks=pytest.mark.slow),
        ("causal", ["left_to_right"]),
        pytest.param("denoising", ["random", "pseudo"], marks=pytest.mark.slow),
    ],
)
def test_entropies_are_those_of_all_tokens_in_the_place_of_one(models, kind, orders):
    scorer = Scorer(models[kind], NumberTokenizer(10))
    for text in TEXTS:
        tokens = text.split()
        for order in orders:
            [found] = scorer([text], order, with_entropies=True)
            [plain] = scorer([text], order)
            np.testing.assert_allclose(found.log_likelihoods, plain.log_likelihoods, atol=1e-5)
            assert plain.entropies.size == 0 and len(found.entropies) == len(tokens)
            for place in (0, 3, len(tokens) - 1):
                others = [
                    " ".join([*tokens[:place], str(token), *tokens[place + 1 :]])
                    for token in range(10)
                ]
                log_p = np.array([s.log_likelihoods[place] for s in scorer(others, order)])
                assert np.exp(log_p).sum() == pytest.approx(1, abs=1e-5)
                expected = -np.sum(np.exp(log_p) * log_p)
                assert found.entropies[place] == pytest.approx(expected, abs=1e-4)


def test_entropies_of_words_are_sums_and_those_of_random_orders_are_means(models):
    scorer = Scorer(models["permutation"], NumberTokenizer(10))
    [score] = scorer(TEXTS[:1], "random", 3, with_entropies=True)
    one_by_one = [
        scorer(TEXTS[:1], lambda ids, keys=keys: [np.argsort(keys[:5])], with_entropies=True)[0]
        for keys in (np.random.default_rng([0, draw]).random(5) for draw in range(3))
    ]
    mean = np.mean([each.entropies for each in one_by_one], axis=0)
    np.testing.assert_allclose(score.entropies, mean, atol=1e-5)
    words = words_of(score, unit="bits")
    np.testing.assert_allclose([word.entropy for word in words], score.entropies / np.log(2))
    assert {word.entropy for word in words_of(scorer(TEXTS[:1])[0])} == {None}


def by_hand(model, ids, predicted, hidden):
    """Values log p(predicted | all others but hidden), with a pass of the layers."""
    if model.config.objective.kind == "permutation":
        order = [2 * (n == hidden) + (n == predicted) for n in range(len(ids))]
        inputs = {"token_ids": [ids], "order": [order], "target_positions": [[predicted]]}
    else:
        masked = [MASK_ID if n in (predicted, hidden) else token for n, token in enumerate(ids)]
        inputs = {"token_ids": [masked], "content_positions": [[predicted]]}
    tensors = {name: tf.constant(x, tf.int32) for name, x in inputs.items()}
    # Of one text, though some of the tokens are special ones.
    tensors["segment_ids"] = tf.zeros_like(tensors["token_ids"])
    tensors["is_padding"] = tf.zeros_like(tensors["token_ids"], tf.bool)
    logits = model(tensors)["logits"]
    return log_softmax(logits.numpy().astype(float)[0, 0])[ids[predicted]]


@pytest.mark.parametrize("kind", ["permutation", pytest.param("denoising", marks=pytest.mark.slow)])
def test_information_is_that_of_passes_of_the_layers(models, kind):
    scorer, ids = Scorer(models[kind], NumberTokenizer(10)), [7, 3, 9, 8, 4]
    [found, single, none] = mutual_information(scorer, [TEXTS[0], "7", ""], distance=0)
    assert (len(found), single, none) == (10, [], [])
    for pair in found:
        first, second = pair.first - 1, pair.second - 1
        assert (pair.first_word, pair.second_word) == (str(ids[first]), str(ids[second]))
        alone, other = (
            by_hand(models[kind], ids, second, first),
            by_hand(models[kind], ids, second, -1),
        )
        assert pair.information == pytest.approx(other - alone, abs=1e-4)
        alone, other = (
            by_hand(models[kind], ids, first, second),
            by_hand(models[kind], ids, first, -1),
        )
        assert pair.reversed_information == pytest.approx(other - alone, abs=1e-4)
    assert max(abs(p.information - p.reversed_information) for p in found) > 0.01
    [near] = mutual_information(scorer, TEXTS[:1], distance=2, unit="bits")
    assert [(p.first, p.second) for p in near] == [
        (p.first, p.second) for p in found if p.second - p.first <= 2
    ]
    assert near[0].information == pytest.approx(found[0].information / np.log(2))
    [part] = mutual_information(scorer, TEXTS[:1], targets=[[(4, 9)]])  # After two words.
    assert [(p.first, p.second, p.first_word) for p in part] == [(1, 2, "9"), (2, 3, "8")]
    assert part[1].information == pytest.approx(found[-1].information, abs=1e-5)


def test_without_knowledge_there_is_no_information(models):
    empty = random_model(std=0.0, vocab_size=10)
    for variable in empty.trainable_variables:
        variable.assign(0 * variable)
    [found] = mutual_information(Scorer(empty, NumberTokenizer(10)), ["7 3 9"])
    assert [p.information for p in found] == pytest.approx([0, 0], abs=1e-6)
    causal = Scorer(models["causal"], NumberTokenizer(10))
    with pytest.raises(ConfigError, match="causal"):
        mutual_information(causal, ["7"])  # Without a pair, too.
    with pytest.raises(TypeError, match="scorer"):
        mutual_information("runs/model", ["7 3 9"])
    scorer = Scorer(models["permutation"], NumberTokenizer(10))
    with pytest.raises(DataError, match="a text of one window for mutual information"):
        mutual_information(scorer, TEXTS)
    for wrong in ({"distance": -1}, {"unit": "bit"}, {"punctuation": "none"}):
        with pytest.raises(ConfigError):
            mutual_information(scorer, ["7 3"], **wrong)


def test_files_have_entropies_and_information(capfd, world, tmp_path):
    pd.DataFrame({"text": ["The cat sat.", "And then"], "entropy": ["x", "y"]}).to_csv(
        tmp_path / "a.csv", index=False
    )
    flags = [f"--model={world.pretrained}", "--text=The cat sat.", "--text=And then, so"]

    def rows_of(*arguments):
        assert cli.main([*arguments]) == 0
        return [json.loads(line) for line in capfd.readouterr().out.splitlines()]

    plain, found = rows_of("words", *flags), rows_of("words", *flags, "--entropy")
    assert "entropy" not in plain[0] and plain[-1] == pytest.approx(found[-1], rel=1e-5)
    assert all(word["entropy"] > 0 for word in found[:-1])
    [row, *_] = rows_of("words", flags[0], f"--input={tmp_path}/a.csv")
    assert row["entropy"] == "x"  # A column of the input.
    *pairs, results = rows_of("mutual_information", *flags, "--unit=bits")
    assert [(p["text_id"], p["first_word"]) for p in pairs] == [
        *((1, "The"), (1, "cat")),
        *((2, "And"), (2, "then,")),
    ]
    gaps = [abs(p["information"] - p["reversed_information"]) for p in pairs]
    assert results["mean_gap"] == pytest.approx(np.mean(gaps)) and results["pairs"] == 4
    *in_context, _ = rows_of("mutual_information", *flags[:2], "--context=It was late.")
    assert [p["first_word"] for p in in_context] == ["The", "cat"]
    *after, _ = rows_of("mutual_information", *flags[:2], "--context=It was late.", "--given=right")
    assert after != in_context
