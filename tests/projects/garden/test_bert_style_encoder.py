"""The Model Garden's BERT models on an XLNet encoder."""

import numpy as np
import pytest
from official.nlp.modeling.models import BertClassifier

from official.xlnet.modeling.ops.keras import keras
from official.xlnet.projects.garden import bert_style_encoder
from tests.helpers.tiny import VOCAB, WIDTH, tiny_encoder

LENGTHS = (5, 13, 8)


def inputs(side):
    rng = np.random.default_rng(0)
    shape = (len(LENGTHS), 13)
    mask = np.zeros(shape, np.int32)
    for row, length in enumerate(LENGTHS):
        mask[row, slice(length) if side == "right" else slice(13 - length, None)] = 1
    return {
        "input_word_ids": rng.integers(9, VOCAB, shape).astype(np.int32),
        "input_mask": mask,
        "input_type_ids": np.sort(rng.integers(0, 3, shape)).astype(np.int32),
    }


@pytest.mark.quick
@pytest.mark.parametrize("memory", [0, 7])
@pytest.mark.parametrize("side", ["left", "right"])
def test_outputs_are_those_of_the_encoder_on_each_row_alone(side, memory):
    encoder = tiny_encoder(mem_len=memory)
    given = inputs(side)
    outputs = bert_style_encoder(encoder)(given)
    assert set(outputs) == {"sequence_output", "pooled_output"}
    assert outputs["sequence_output"].shape == (3, 13, WIDTH)
    for row in range(3):
        real = given["input_mask"][row] == 1
        alone = encoder(
            {
                "token_ids": given["input_word_ids"][row][None, real],
                "segment_ids": given["input_type_ids"][row][None, real],
            }
        )["content"][0]
        np.testing.assert_allclose(outputs["sequence_output"][row][real], alone, atol=1e-5)
        np.testing.assert_allclose(outputs["pooled_output"][row], alone[-1], atol=1e-5)


@pytest.mark.slow
def test_a_classifier_trains():
    model = BertClassifier(bert_style_encoder(tiny_encoder(dropout=0.1)), num_classes=3)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss)
    given, labels = inputs("right"), np.array([0, 2, 1])
    losses = model.fit(given, labels, epochs=21, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 2


def test_a_functional_model_of_it_is_saved_whole(tmp_path):
    model = bert_style_encoder(tiny_encoder())
    given = inputs("left")
    model.save(f"{tmp_path}/model.keras")
    again = keras.models.load_model(f"{tmp_path}/model.keras")
    for name, value in model(given).items():
        np.testing.assert_allclose(again(given)[name], value, atol=1e-6)
