"""`xlnet inspect steps`: the bars are the encoder's own counts."""

import io
import json

import matplotlib.image
import numpy as np
import pytest
import tensorflow as tf

from official.xlnet import cli
from official.xlnet.analysis.token_steps import TokenSteps, as_png, token_steps
from official.xlnet.checkpoints.any_format import load_tokenizer
from official.xlnet.checkpoints.convert import convert
from official.xlnet.checkpoints.model_directory import create_model_dir, load_encoder
from official.xlnet.errors import ConfigError
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


def test_bars_are_as_high_as_the_steps():
    pieces = ["▁the", "$x$", "a"] * 15
    few, many = (
        matplotlib.image.imread(io.BytesIO(as_png(TokenSteps(pieces, np.full(45, n), 6))))
        for n in (1, 5)
    )
    blue = np.array([0x29, 0x61, 0x9F]) / 255
    painted = [np.all(np.abs(image[..., :3] - blue) < 0.01, axis=-1).sum() for image in (few, many)]
    assert painted[1] == pytest.approx(5 * painted[0], rel=0.05)


def test_command(model_dir, tmp_path, capsys):
    output = str(tmp_path / "steps.png")
    arguments = ["inspect", "steps", f"--model={model_dir}", f"--text={TEXT}"]
    assert cli.main([*arguments, f"--output={output}"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    figures = json.loads(captured.out.splitlines()[-1])
    steps = token_steps(model_dir, TEXT)
    assert figures["tokens"] == len(steps.pieces) and figures["layers"] == 5
    assert figures["mean_steps"] == pytest.approx(steps.num_steps.mean(), abs=1e-3)
    assert cli.main([*arguments, "--output=x.html"]) == 2
    assert "expected a file ending in .png" in capsys.readouterr().err


def test_other_formats_refuse_shared_blocks(model_dir, tmp_path):
    with pytest.raises(
        ConfigError,
        match=r"model\.depth: expected stacked, as in every other format, got 'adaptive'",
    ):
        convert(model_dir, str(tmp_path / "hf"), to="hf")
