"""Likelihoods of decoding in steps: sums over all strings, and passes of the layers by hand."""

import itertools
import json

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax

from official.xlnet import cli
from official.xlnet.configs.choices import SCORED_SELECTIONS
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.inference.scoring import Scorer
from official.xlnet.projects.any_order import stepwise
from official.xlnet.projects.any_order.stepwise import Steps
from official.xlnet.projects.any_order.stepwise.scoring import StepScorer
from official.xlnet.tokenization.special_tokens import MASK_ID
from tests.helpers.small_language_model import NumberTokenizer, random_model
from tests.helpers.wrong_input import run

KINDS = ["permutation", "absorbing_diffusion"]
STRINGS = [" ".join(map(str, ids)) for ids in itertools.product(range(10), repeat=3)]


@pytest.fixture(scope="module")
def models():
    return {kind: random_model(kind=kind, vocab_size=10) for kind in KINDS}


def totals(scorer, texts, **options):
    return np.array([score.total for score in scorer.score(texts, **options)])


@pytest.mark.parametrize("kind", [KINDS[0], pytest.param(KINDS[1], marks=pytest.mark.slow)])
def test_probabilities_of_all_strings_sum_to_1_in_any_number_of_steps(models, kind):
    """One step is the product of what is predicted from nothing."""
    tokenizer = NumberTokenizer(10)
    found = {}
    for steps in (Steps(1), *(Steps(2, name) for name in SCORED_SELECTIONS), Steps(3)):
        found[steps] = totals(StepScorer(models[kind], tokenizer, steps), STRINGS)
        assert np.exp(found[steps]).sum() == pytest.approx(1, abs=1e-5)
    single = np.exp(found[Steps(1)]).reshape([10, 10, 10])
    margins = [single.sum((1, 2)), single.sum((0, 2)), single.sum((0, 1))]
    np.testing.assert_allclose(single, np.einsum("a,b,c->abc", *margins), atol=1e-6)
    more = totals(StepScorer(models[kind], tokenizer, Steps(9)), STRINGS[:7])
    np.testing.assert_allclose(more, found[Steps(3)][:7], atol=1e-5)
    in_order = totals(Scorer(models[kind], tokenizer), STRINGS, order="confidence")
    distance = np.abs(in_order - found[Steps(3)]).max()
    if kind == "permutation":  # Known tokens attend to both sides, not to those before them.
        assert distance > 0.01
    else:  # Masked tokens are predicted from the same text: one process.
        assert distance < 1e-4


def by_hand(model, ids, targets, steps):
    """Log-likelihood of targets that are filled in steps, given the rest, for one text."""
    unknown, total = {*targets}, 0.0
    for number in range(1, steps.number + 1):
        row = [MASK_ID if place in unknown else token for place, token in enumerate(ids)]
        inputs = {
            "token_ids": [row],
            "segment_ids": [len(ids) * [0]],
            "is_padding": [len(ids) * [0]],
        }
        places = [list(range(len(ids)))]
        if model.config.objective.kind == "permutation":
            inputs["order"] = [[int(place in unknown) for place in range(len(ids))]]
            inputs["target_positions"] = places
        else:
            inputs["content_positions"] = places
        tensors = {name: tf.constant(x, tf.int32) for name, x in inputs.items()}
        tensors["is_padding"] = tf.cast(tensors["is_padding"], tf.bool)
        log_p_TV = log_softmax(model(tensors)["logits"].numpy()[0].astype(float), axis=1)
        certainty = {
            "confidence": log_p_TV.max(1),
            "margin": np.diff(np.sort(np.exp(log_p_TV), axis=1)[:, -2:])[:, 0],
            "entropy": (np.exp(log_p_TV) * log_p_TV).sum(1),
        }[steps.select]
        known = int(np.ceil(len(targets) * number / steps.number))
        for place in sorted(sorted(unknown), key=lambda place: -certainty[place].round(4))[
            : known - len(targets) + len(unknown)
        ]:
            total += log_p_TV[place, ids[place]]
            unknown.remove(place)
    return total


@pytest.mark.parametrize(
    "steps",
    [Steps(2), *(pytest.param(Steps(2, x), marks=pytest.mark.slow) for x in ("margin", "entropy"))],
    ids=str,
)
def test_targets_are_scored_as_by_hand_whatever_the_other_texts(models, steps):
    texts = {"8 3 9 4 7": [0, 1, 3], "5 6": [1], "9 9 3 8 4 4 6": [0, 1, 2, 4, 5]}
    spans = [[(2 * n, 2 * n + 1) for n in targets] for targets in texts.values()]
    for model in models.values():
        scorer = StepScorer(model, NumberTokenizer(10), steps)
        found = scorer.score([*texts, ""], targets=[*spans, []])
        for text, score in zip(texts, found, strict=False):
            ids = [int(piece) for piece in text.split()]
            assert score.total == pytest.approx(by_hand(model, ids, texts[text], steps), abs=1e-4)
            assert score.pieces == [f"▁{ids[place]}" for place in texts[text]]
        assert found[-1].total == 0 and found[-1].pieces == []
        [alone] = scorer.score([[*texts][1]], targets=spans[1:2])
        assert alone.total == pytest.approx(found[1].total, abs=1e-5)


def test_processes_without_such_a_likelihood_are_refused(models):
    model, tokenizer = models["permutation"], NumberTokenizer(10)
    for steps in (Steps(2, "drawn"), Steps(2, "random"), Steps(2, remask=True)):
        with pytest.raises(ConfigError, match=r"select|remask"):
            StepScorer(model, tokenizer, steps)
    with pytest.raises(ConfigError, match="score in steps"):
        StepScorer(random_model(kind="causal"), tokenizer, Steps(2))
    with pytest.raises(DataError, match="a text of one window for steps, got 30 tokens"):
        StepScorer(model, tokenizer, Steps(2)).score([" ".join(["7"] * 30)])


def test_files_are_scored_in_steps(capfd, world):
    flags = [f"--model={world.pretrained}", "--text=The cat sat.", "--text=", "--steps=2"]
    printed = {}
    for name, more in {
        "verb": ["score_steps"],
        "option": ["score"],
        "entropy": ["score_steps", "--select=entropy", "--context=It was late."],
        "before": ["score_steps", "--select=entropy", "--context=It was late.", "--given=right"],
    }.items():
        assert cli.main([*more[:1], *flags, *more[1:]]) == 0
        printed[name] = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    [row, empty, results] = printed["verb"]
    assert printed["option"] == printed["verb"]
    assert row["total"] == pytest.approx(sum(row["log_likelihoods"])) and row["total"] < 0
    assert results["log_likelihood"] == pytest.approx(row["total"]) and empty["tokens"] == []
    assert printed["entropy"][0]["tokens"] == row["tokens"]
    assert len({printed[name][0]["total"] for name in ("verb", "entropy", "before")}) == 3
    refused = run(capfd, "score_steps", *flags, "--select=drawn")
    assert refused.status == 2 and "select: expected one of" in refused.err
    long = run(capfd, "score_steps", *flags, "--text=" + "The cat sat. " * 99)
    assert "a text of one window for steps" in long.err


@pytest.mark.parametrize("kind", [KINDS[0], pytest.param(KINDS[1], marks=pytest.mark.slow)])
def test_texts_of_many_lengths_are_of_few_graphs_and_score_as_alone(models, kind):
    """Rows, lengths and numbers of targets are padded to a few; each other one is a trace."""
    rng = np.random.default_rng(5)
    scorer = StepScorer(models[kind], NumberTokenizer(10), Steps(1))
    graph = stepwise.graph_of(models[kind], stepwise._log_probabilities)
    texts = [
        " ".join(map(str, rng.integers(0, 10, length))) for length in rng.permutation(44) // 2 + 1
    ]
    before, together = graph.experimental_get_tracing_count(), []
    while len(together) < len(texts):  # Chunks of a file, the last one shorter than others.
        chunk = texts[len(together) :][: rng.integers(5, 12)]
        together += scorer.score(chunk)
    # 16 tokens, of which 4, 8 or 16 are targets; or 32, of which 16 or 32 are.
    assert graph.experimental_get_tracing_count() - before <= 5
    assert scorer.num_windows == len(texts)
    for index in range(0, len(texts), 13):
        (alone,) = scorer.score([texts[index]])
        assert alone.text == together[index].text
        np.testing.assert_allclose(
            alone.log_likelihoods, together[index].log_likelihoods, atol=1e-5
        )
