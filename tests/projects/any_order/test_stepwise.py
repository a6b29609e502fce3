"""Decoding in steps against the same by hand, token by token with passes of the layers."""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats
from scipy.special import log_softmax, softmax

from official.xlnet.configs.choices import SCORED_SELECTIONS, STEP_SELECTIONS
from official.xlnet.errors import ConfigError
from official.xlnet.inference.decoding.sampling import Sampling
from official.xlnet.inference.generation import fill_blanks, generate
from official.xlnet.modeling.ops.keras import keras
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
    keras.utils.set_random_seed(1)  # `random_model` adds to weights that are drawn.
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
                    "confidence": log_p.max(),
                    "drawn": log_p[token],
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
        *(Steps(1), Steps(2, "margin"), Steps(3, "entropy"), Steps(2, "drawn")),
        Steps(3, remask=True),
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
    assert passes == [(2, 12, 31)] * 3  # In a multiple of four slots.
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
    assert count() == traces  # The same graph for texts of other lengths, with fewer targets.


TOY = [12, 25, 30]  # The tokens that its three targets may become.
PLACES, TEMPERATURE = [1, 2, 4], 0.7


def toy_predictions(model):
    """{tokens of the targets, None where unknown: log-likelihoods [targets, V]}, in one pass."""
    states = list(itertools.product([None, *TOY], repeat=3))
    rows = np.tile([11, MASK_ID, MASK_ID, 17, MASK_ID], [len(states), 1])
    order = np.zeros_like(rows)
    for row, order_T, state in zip(rows, order, states, strict=True):
        row[PLACES] = [token or MASK_ID for token in state]
        order_T[PLACES] = [token is None for token in state]
    inputs = {"token_ids": rows, "order": order, "target_positions": len(states) * [PLACES]}
    tensors = {name: tf.constant(x, tf.int32) for name, x in inputs.items()}
    log_p_SPV = log_softmax(model(tensors)["logits"].numpy().astype(float), axis=2)
    return dict(zip(states, log_p_SPV, strict=True))


def enumerated(predictions, steps, state=(None, None, None), number=1, known=None):
    """{tokens: probability} of all that can be drawn, without a random number."""
    known = {} if known is None else known
    if None not in state:
        return {state: 1.0}
    if state in known:
        return known[state]
    log_p_PV = predictions[state]
    drawn_PA = softmax(log_p_PV[:, TOY] / TEMPERATURE, axis=1)
    unknown = [place for place in range(3) if state[place] is None]
    num_new = int(np.ceil(3 * number / steps.number)) - (3 - len(unknown))
    result = dict.fromkeys(itertools.product(TOY, repeat=3), 0.0)
    for draws in itertools.product(range(3), repeat=len(unknown)):
        probability = np.prod(drawn_PA[unknown, draws])
        tokens = {place: TOY[draw] for place, draw in zip(unknown, draws, strict=True)}
        certainty = {
            "confidence": lambda place: log_p_PV[place].max(),
            "entropy": lambda place: np.sum(np.exp(log_p_PV[place]) * log_p_PV[place]),
            "margin": lambda place: np.diff(np.sort(np.exp(log_p_PV[place]))[-2:])[0],
            "drawn": lambda place: log_p_PV[place, tokens[place]],  # noqa: B023
        }
        kept_sets = list(itertools.combinations(unknown, num_new))
        if steps.select != "random":
            kept_sets = [sorted(unknown, key=certainty[steps.select])[len(unknown) - num_new :]]
        for kept in kept_sets:
            new = tuple(tokens[p] if p in kept else token for p, token in enumerate(state))
            for string, rest in enumerated(predictions, steps, new, number + 1, known).items():
                result[string] += probability * rest / len(kept_sets)
    known[state] = result
    return result


@pytest.mark.slow
def test_what_is_drawn_has_the_probabilities_of_all_that_can_be_drawn(models):
    """With each selection; `drawn` alone is no product of what the model predicts."""
    predictions, num_draws = toy_predictions(models["permutation"]), 1500
    is_allowed_V = np.isin(np.arange(31), TOY)
    sampling = Sampling(temperature=TEMPERATURE)
    counts, expected = {}, {}
    for steps in [*(Steps(3, name) for name in STEP_SELECTIONS), Steps(2, "entropy"), Steps(1)]:
        drawn = decode_in_steps(
            models["permutation"],
            [[11, 0, 0, 17, 0]] * num_draws,
            [PLACES] * num_draws,
            [np.tile(is_allowed_V, [3, 1])] * num_draws,
            [np.random.default_rng([7, draw]) for draw in range(num_draws)],
            sampling,
            steps,
        )
        probabilities = enumerated(predictions, steps)
        assert sum(probabilities.values()) == pytest.approx(1)
        counted = collections.Counter(tuple(tokens) for tokens, _ in drawn)
        counts[steps] = [counted[string] for string in probabilities]
        expected[steps] = num_draws * np.array([*probabilities.values()])
        assert stats.chisquare(counts[steps], expected[steps]).pvalue > 1e-3, steps
    others = [(Steps(3, "drawn"), Steps(3)), (Steps(3), Steps(3, "drawn")), (Steps(1), Steps(3))]
    for found, of_other in others:  # The numbers of draws can tell.
        assert stats.chisquare(counts[found], expected[of_other]).pvalue < 1e-6


def test_names_that_flags_offer_are_those_that_decoding_knows():
    assert {*stepwise.CERTAINTY} == {*SCORED_SELECTIONS}
    for name in STEP_SELECTIONS:
        Steps(2, name)


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
