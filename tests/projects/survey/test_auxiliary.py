"""Auxiliary objectives: their labels and losses by hand, and the stages in which they begin."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.configs.objective import Stage
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.objectives.auxiliary import AuxiliaryObjectives
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.tokenization.special_tokens import CLS_ID, EOD_ID, SEP_ID
from tests.helpers.compiled import make_model
from tests.helpers.tiny import REUSE, TOKENS, random_windows, tiny_config

ALL = "[next_sentence, capitalization, token_document]"


def windows(seed=0, batch=4):
    """Random windows whose B follows A in some rows only."""
    is_next = np.random.default_rng(seed).integers(0, 2, batch).astype(np.int32)
    return {**random_windows(seed, batch=batch), "is_next": tf.constant(is_next)}


def regression(hidden_BXD, part, labels):
    """Loss of logistic regression over the labels that count, and its gradient; in float64."""
    hidden, kernel = np.array(hidden_BXD, float), part.kernel.numpy().astype(float)
    p = 1 / (1 + np.exp(-(hidden @ kernel + float(part.bias))))
    label, weight = (np.array(x) for x in labels)
    loss = (-np.log(np.where(label == 1, p, 1 - p)) * weight).sum() / weight.sum()
    return loss, np.einsum("bx,bxd->d", (p - label) * weight, hidden) / weight.sum()


@pytest.mark.parametrize("settings", [{}, {"kind": "denoising"}])
def test_losses_and_gradients_by_hand_and_the_language_model_as_without_them(settings):
    weights = {"next_sentence": 1, "capitalization": 0.5, "token_document": 2}
    settings = {"clip_norm": 0, "weight_decay": 0, **settings}
    model = make_model(auxiliary=ALL, auxiliary_weights=[*weights.values()], **settings)
    plain = make_model(**settings)
    model.compile(keras.optimizers.SGD(0.1))
    batch = windows()
    task = model.make_permutation(batch)
    outputs = model(task.inputs | model._recall(model.memory, batch))
    content = outputs["content"].numpy()
    predicted = outputs.get("query")
    if settings.get("kind") == "denoising":
        positions = task.inputs["content_positions"].numpy()
        predicted = np.take_along_axis(content, positions[..., None], axis=1)
    hidden = {"next_sentence": content[:, -1:], "capitalization": predicted}
    hidden["token_document"] = content[:, :REUSE]
    wanted = {}
    for (name, part), labels in zip(model.auxiliary.parts.items(), task.auxiliary, strict=True):
        loss, gradient = regression(hidden[name], part, labels)
        wanted[name] = loss, part.kernel.numpy() - 0.1 * weights[name] * gradient
    logged = model.train_step(batch)
    for name, (loss, kernel) in wanted.items():
        np.testing.assert_allclose(logged[f"loss_{name}"], loss, rtol=2e-5)
        np.testing.assert_allclose(model.auxiliary.parts[name].kernel, kernel, atol=1e-5)
    np.testing.assert_allclose(logged["loss"], plain.train_step(batch)["loss"], rtol=1e-5)


def test_capitalization_asks_for_targets_that_begin_a_word_with_a_letter():
    model, batch = make_model(auxiliary="[capitalization]"), windows(2)
    task = model.make_permutation(batch)
    positions, mask = task.inputs["target_positions"].numpy(), task.mask_BP.numpy()
    label, weight = (x.numpy() for x in task.auxiliary[0])
    case = np.take_along_axis(batch["letter_case"].numpy(), positions, axis=1)
    np.testing.assert_array_equal(weight > 0, (mask > 0) & (case >= 0))
    np.testing.assert_array_equal(label[weight > 0], case[weight > 0])
    assert 0 < weight.sum() < mask.sum()


def test_token_document_by_hand():
    """Rows: B follows; B is random; a document ends in the reuse part, in A, and before A."""
    a, b, c, d, e = 11, 12, 13, 14, 15
    rows = np.array(
        [
            [a, b, c, a, d, 16, c, d, e, SEP_ID, a, SEP_ID, CLS_ID],
            [a, b, c, a, d, 16, c, d, e, SEP_ID, a, SEP_ID, CLS_ID],
            [a, b, EOD_ID, a, d, 16, c, d, e, SEP_ID, a, SEP_ID, CLS_ID],
            [a, b, c, a, d, 16, c, EOD_ID, d, SEP_ID, a, SEP_ID, CLS_ID],
            [a, b, c, a, d, EOD_ID, 16, c, d, SEP_ID, a, SEP_ID, CLS_ID],
            [a, b, c, a, EOD_ID, 16, c, d, e, SEP_ID, a, SEP_ID, CLS_ID],
        ],
        np.int32,
    )
    wanted_label = np.array(
        [[1, 0, 1, 1, 1], [0, 0, 1, 0, 1], [1, 0, 0, 1, 1], [0, 0, 1, 0, 0], [0] * 5, [0] * 5]
    )
    wanted_weight = np.ones_like(wanted_label)
    wanted_weight[2, :3] = 0  # Another document.
    wanted_weight[4:] = 0  # The document does not go on in A.
    assert rows.shape[1] == TOKENS and wanted_label.shape[1] == REUSE
    first_sep = np.argmax(rows == SEP_ID, axis=1)
    segments = (np.arange(TOKENS) > first_sep[:, None]).astype(np.int32)
    segments[:, -1] = 2
    batch = {
        "token_ids": tf.constant(rows),
        "segment_ids": tf.constant(segments),
        "can_be_target": tf.constant(rows >= 9),
        "is_next": tf.constant([1, 0, 1, 1, 1, 1]),
    }
    config = tiny_config(auxiliary="[token_document]")
    part = AuxiliaryObjectives(ObjectiveSections.of(config)).parts["token_document"]
    label, weight = part.labels(batch, None)
    np.testing.assert_array_equal(weight, wanted_weight)
    np.testing.assert_array_equal(label * wanted_weight.astype(int), wanted_label * wanted_weight)


def test_stages_begin_at_their_steps_and_stay():
    config = tiny_config(
        auxiliary="[next_sentence, capitalization]",
        auxiliary_steps="[0, 3]",
        auxiliary_weights="[1, 0.25]",
    )
    stages = [Stage("next_sentence", 0, 1.0), Stage("capitalization", 3, 0.25)]
    assert config.objective.stages() == stages
    layer = AuxiliaryObjectives(ObjectiveSections.of(config))
    layer = AuxiliaryObjectives.from_config(layer.get_config())
    weights = [
        [float(w) for w in layer.stage_weights(tf.constant(step, tf.int64))] for step in (0, 2, 3)
    ]
    assert weights == [[1, 0], [1, 0], [1, 0.25]]


def test_an_objective_that_has_not_begun_changes_nothing_but_its_own_decay():
    model = make_model(auxiliary="[token_document]", auxiliary_steps="[2]")
    plain = make_model()
    for step in range(3):
        batch = windows(step)
        model.train_step(batch)
        plain.train_step(batch)
        pairs = zip(model.encoder.variables, plain.encoder.variables, strict=True)
        assert all(np.array_equal(*pair) for pair in pairs) == (step < 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"auxiliary": "[capitalisation]"}, "objective.auxiliary: expected one of .*capitaliz"),
        ({"auxiliary": "[next_sentence]", "next_sentence": True}, "different names"),
        ({"auxiliary": ALL, "auxiliary_steps": "[0, 2]"}, "auxiliary_steps: expected 3 numbers"),
        ({"auxiliary": ALL, "auxiliary_steps": "[0, 5, 2]"}, "ascending"),
        ({"auxiliary": ALL, "auxiliary_steps": "[0, 1, soon]"}, "auxiliary_steps"),
        ({"auxiliary": ALL, "auxiliary_weights": "[1, 1, -1]"}, "auxiliary_weights"),
        ({"auxiliary": ALL, "auxiliary_weights": "[1, 1, .nan]"}, "auxiliary_weights"),
        ({"kind": "causal", "next_sentence": True}, "objective.kind"),
        ({"kind": "causal", "auxiliary": "[capitalization]"}, "objective.kind"),
        ({"auxiliary": "[capitalization]", "lowercase": True}, "data.lowercase"),
        ({"auxiliary": "[token_document]", "reuse_len": 0}, "data.reuse_len"),
        (
            {"auxiliary": "[token_document]", "kind": "denoising", "mem_len": 0},
            "model.mem_len",
        ),
    ],
)
def test_settings_that_cannot_work(changes, message):
    with pytest.raises(ConfigError, match=message):
        AuxiliaryObjectives(ObjectiveSections.of(tiny_config(**changes)))
