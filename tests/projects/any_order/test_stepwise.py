"""Decoding in steps against the same by hand, token by token with passes of the layers."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax

from official.xlnet.configs.choices import STEP_SELECTIONS
from official.xlnet.errors import ConfigError
from official.xlnet.inference.decoding.sampling import Sampling
from official.xlnet.inference.generation import fill_blanks, generate
from official.xlnet.projects.any_order import stepwise
from official.xlnet.projects.any_order.stepwise import Steps, decode_in_steps
from official.xlnet.tokenization.special_tokens import MASK_ID
from tests.helpers.small_language_model import NumberTokenizer, random_model

GREEDY = Sampling(temperature=0.0)
ROWS = [
    ([11, 0, 17, 0, 25, 0, 0, 30], [1, 3, 5, 6]),
    ([0, 12, 0], [0, 2]),
    ([9, 10], [2, 3, 4, 5, 6]),
]
IS_ALLOWED = [
    np.random.default_rng(n).random([len(row[1]), 31]) < 0.7 for n, row in enumerate(ROWS)
]


@pytest.fixture(scope="module")
def models():
    return {kind: random_model(kind=kind) for kind in ("permutation", "absorbing_diffusion")}


def by_hand(model, ids, targets, is_allowed, steps):
    """Greedy decoding of one row without padding."""
    known, length = {}, max(len(ids), targets[-1] + 1)
    for number in range(1, steps.number + 1):
        row = [*ids, *[0] * (length - len(ids))]
        for place in targets:
            row[place] = known[place][1] if place in known else MASK_ID
        inputs = {"token_ids": [row]}
        if model.config.objective.kind == "permutation":
            unknown = [int(n in targets and n not in known) for n in range(length)]
            inputs |= {"order": [unknown], "target_positions": [targets]}
        else:
            inputs["content_positions"] = [targets]
        tensors = {name: tf.constant(x, tf.int32) for name, x in inputs.items()}
        logits = model(tensors)["logits"].numpy()[0].astype(float)
        for place, log_p, allowed in zip(
            targets, log_softmax(logits, axis=1), is_allowed, strict=True
        ):
            if place not in known:
                token = int(np.where(allowed, log_p, -np.inf).argmax())
                first, second = np.sort(np.exp(log_p))[[-1, -2]]
                certainty = {
                    "confidence": log_p[token],
                    "margin": first - second,
                    "entropy": np.sum(np.exp(log_p) * log_p),
                }[steps.select]
                known[place] = (certainty, token, log_p[token], number)
        num_kept = int(np.ceil(len(targets) * number / steps.number))
        stays = lambda place: not steps.remask and known[place][3] < number  # noqa: B023, E731
        best = sorted(known, key=lambda place: (stays(place), known[place][0]), reverse=True)
        known = {place: known[place] for place in best[:num_kept]}
    return [known[place][1] for place in targets], [known[place][2] for place in targets]


@pytest.mark.parametrize("kind", ["permutation", "absorbing_diffusion"])
@pytest.mark.parametrize(
    "steps",
    [
        *(Steps(1), Steps(2, "margin"), Steps(3, "entropy"), Steps(3, remask=True)),
    ],
    ids=str,
)
def test_each_step_keeps_the_most_certain_tokens(models, kind, steps):
    ids, targets = zip(*ROWS, strict=True)
    random = [np.random.default_rng(0)] * 3
    found = decode_in_steps(models[kind], ids, targets, IS_ALLOWED, random, GREEDY, steps)
    for row, (tokens, scores) in enumerate(found):
        expected, expected_scores = by_hand(models[kind], *ROWS[row], IS_ALLOWED[row], steps)
        assert tokens == expected
        np.testing.assert_allclose(scores, expected_scores, atol=1e-4)


def test_the_number_of_passes_is_that_of_the_steps_and_rows_are_independent(models, monkeypatch):
    passes = []
    monkeypatch.setattr(stepwise, "finite", lambda x: (passes.append(x.shape), x)[1])
    model, options = (
        models["permutation"],
        {"tokenizer": NumberTokenizer(31), "steps": 3, "select": "random", "num_tokens": 11},
    )
    together = generate(model, ["12 13", "30 11 9"], seed=4, **options)
    assert passes == [(2, 11, 31)] * 3
    again = [generate(model, ["12 13", text], seed=4, **options)[1] for text in ("30 11 9", "14")]
    assert together[1] == again[0] != again[1]
    assert generate(model, "12 13", seed=5, **options) != together[0]
    diffusion = models["absorbing_diffusion"]
    filled = fill_blanks(diffusion, "12 ____{3} 14 ____", tokenizer=NumberTokenizer(31), steps=2)
    assert len(filled.split()) == 6
    count = stepwise.graph_of(diffusion, stepwise._log_probabilities).experimental_get_tracing_count
    traces, texts = count(), [f"12 ____{{3}} {text}" for text in ("14", "14 15", "14 15 16")]
    again = fill_blanks(diffusion, texts, tokenizer=NumberTokenizer(31), steps=2)
    assert len({*again}) == 3
    assert count() == traces + 1  # One graph for texts of three lengths.


def test_names_that_flags_offer_are_those_that_decoding_knows():
    assert {*stepwise._SELECT} == {*STEP_SELECTIONS}


def test_what_cannot_decode_in_steps_is_refused(models):
    options = {"tokenizer": NumberTokenizer(31)}
    with pytest.raises(ConfigError, match=r"objective\.kind"):
        generate(models["absorbing_diffusion"], "12", **options)
    with pytest.raises(ConfigError, match="generate in steps"):
        generate(random_model(kind="causal"), "12", steps=2, **options)
    for more in ({"select": "margin"}, {"remask": True}):
        with pytest.raises(ConfigError, match="steps: expected their number"):
            generate(models["permutation"], "12", **options, **more)
    for wrong in ({"number": 0}, {"number": 2, "select": "best"}):
        with pytest.raises(ConfigError):
            Steps(**wrong)
