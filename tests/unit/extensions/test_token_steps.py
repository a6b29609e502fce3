"""`xlnet inspect steps`: the bars are the encoder's own counts."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.analysis.token_steps import token_steps
from official.xlnet.checkpoints.any_format import load_tokenizer
from official.xlnet.checkpoints.model_directory import create_model_dir, load_encoder
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.tiny import randomize, tiny_config
from tests.unit.extensions.halting import vary_halting

TEXT = "The people of the world have been in this long before, and they would say so now."


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    directory = str(tmp_path_factory.mktemp("model"))
    config = tiny_config(vocab_size=211, depth="adaptive", num_layers=5)
    model = XLNetPretrainer(config)
    randomize(model.trainable_variables, seed=1)
    vary_halting(model.encoder.depth, 5)
    create_model_dir(directory, config, f"{vocabulary_dir()}/spiece.model")
    tf.train.CheckpointManager(tf.train.Checkpoint(model=model), directory, 1).save()
    return directory


def test_steps_are_those_of_the_encoder(model_dir):
    """The step at which the sum of probabilities, from the layers' inputs, passes the threshold."""
    steps = token_steps(model_dir, TEXT, text_pair="Now and then.")
    encoder, tokenizer = load_encoder(model_dir), load_tokenizer(model_dir)
    ids = [*tokenizer.encode(TEXT), 4, *tokenizer.encode("Now and then."), 4, 3]
    assert steps.pieces == [tokenizer.id_to_piece(i) for i in ids] and steps.most == 5
    segments = [0] * (ids.index(4) + 1)
    segments += [1] * (len(ids) - len(segments) - 1) + [2]
    hidden = encoder(
        {"token_ids": np.array([ids]), "segment_ids": np.array([segments])},
        return_hidden_states=True,
    )["hidden_states"][:-1, 0]
    logits = hidden @ encoder.depth.halting_kernel[:, None] + encoder.depth.halting_bias
    total = np.cumsum(1 / (1 + np.exp(-logits[..., 0])), axis=0)
    expected = np.minimum(1 + np.sum(total < 0.99, axis=0), 5)
    np.testing.assert_array_equal(steps.num_steps, expected)
    assert len(set(expected.tolist())) > 1
