"""Steps of tokens: those of the encoder. The network is of the project survey."""

import numpy as np
import pytest

from official.xlnet import save_pretrained
from official.xlnet.checkpoints.any_format import load_tokenizer
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.projects.pictures.attention_maps import token_steps
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.tiny import WIDTH, randomize, tiny_config

universal = pytest.importorskip("official.xlnet.projects.survey.universal")
STEPS = 5


def vary_halting(depth):
    """Weights with which rows halt after different numbers of steps."""
    kernel = np.random.default_rng(0).standard_normal(WIDTH) / 2
    # What all rows have in common, the encoding of a step, has no say.
    encodings = np.stack([universal.step_encoding(1 + n, WIDTH) for n in range(STEPS)], axis=1)
    kernel -= encodings @ np.linalg.lstsq(encodings, kernel, rcond=None)[0]
    depth.halting_kernel.assign(kernel)
    depth.halting_bias.assign(-0.7)


def test_shown_steps_are_those_of_the_encoder(tmp_path):
    text = "The people of the world have been in this long before, and they would say so now."
    model = XLNetPretrainer(tiny_config(vocab_size=211, depth="adaptive", num_layers=STEPS))
    randomize(model.trainable_variables, seed=1)
    vary_halting(model.encoder.depth)
    save_pretrained(model, str(tmp_path), f"{vocabulary_dir()}/spiece.model")
    steps = token_steps(str(tmp_path), text, text_pair="Now and then.")
    tokenizer = load_tokenizer(str(tmp_path))
    a, b = tokenizer.encode([text, "Now and then."])
    ids, segments = [*a, 4, *b, 4, 3], [0] * len(a) + [0] + [1] * len(b) + [1, 2]
    assert steps.pieces == [tokenizer.id_to_piece(i) for i in ids] and steps.most == STEPS
    inputs = {"token_ids": np.array([ids]), "segment_ids": np.array([segments])}
    expected = model.encoder(inputs, return_num_steps=True)["num_steps"][0].numpy()
    np.testing.assert_array_equal(steps.num_steps, expected)
    assert len(set(expected.tolist())) > 1
