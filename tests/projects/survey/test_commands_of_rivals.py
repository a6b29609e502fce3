"""The commands with the networks of rivals: from text to a served model, and what they refuse."""

import json

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from official import xlnet
from official.xlnet import cli
from official.xlnet.configs.experiment import XLNetConfig
from tests.helpers.world import command

pytestmark = pytest.mark.slow

SIZES = ["mem_len=0", "max_positions=37", "bidirectional=false", "init_std=0.1"]
SIZES += ["num_steps=4", "warmup_steps=0"]
SETTINGS = {
    "bert": ["network=bert", "kind=denoising", "next_sentence=true"],
    "gpt": ["network=gpt", "attention_type=uni", "kind=causal"],
}


@pytest.fixture(scope="module", params=SETTINGS)
def folder(request, world, tmp_path_factory):
    """A folder with the data, the pre-trained and the fine-tuned model of a network."""
    folder = tmp_path_factory.mktemp(request.param)
    XLNetConfig.load(world.config, [*SIZES, *SETTINGS[request.param]]).save(str(folder))
    recipe = {"config": folder / "config.yaml"}
    command("prepare", **recipe, input=world.text, vocab=world.vocab, output=folder / "data")
    command("pretrain", **recipe, data=folder / "data", output=folder / "model")
    files = (f"--init_from={folder}/model", f"--output={folder}/tuned")
    mean = "--set=task.summary=mean"
    command("finetune", *world.finetune_flags("classification"), mean, *files)
    return folder


def test_it_learns_a_task_and_every_way_of_prediction_agrees(folder, world, tmp_path):
    dev = world.files("classification")["dev"]
    rows, tuned, output = pd.read_csv(dev, sep="\t"), folder / "tuned", tmp_path / "rows.jsonl"
    accuracy = command("evaluate", model=tuned, data=dev)["accuracy"]
    assert accuracy > 0.8
    command("predict", model=tuned, input=dev, output=output)
    labels = [json.loads(line)["label"] for line in output.read_text().splitlines()]
    assert np.mean(rows["label"] == labels) == pytest.approx(accuracy)
    longest = max(map(len, rows["text"]))
    limits = {"max_characters": longest, "max_windows": 1}
    flags = {"model": tuned, "output": tmp_path / "served", **limits}
    path = command("export", "--buckets=23", **flags)["path"]
    serve = tf.saved_model.load(path).signatures["serving_default"]
    answers = serve(text=tf.constant(rows["text"]))
    assert [label.decode() for label in answers["label"].numpy()] == labels
    with pytest.raises(tf.errors.InvalidArgumentError, match="characters"):
        serve(text=tf.constant(["a" * (longest + 1)]))


def test_attention_maps_are_shown(folder, capsys):
    pytest.importorskip("official.xlnet.projects.pictures")
    page = f"{folder}/maps.html"
    maps = xlnet.attention_maps(str(folder / "model"), "the time was good")
    flags = [f"--model={folder}/model", "--text=the time was good", f"--output={page}"]
    assert cli.main(["inspect", "attention", *flags]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == len(maps.pieces)
    sums = maps.weights.sum(-1)
    np.testing.assert_allclose(sums, np.ones_like(sums), atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("generate", "--text=the time"), "model.network: expected xlnet to generate text"),
        (("export", "--head=lm", "--output={0}/lm"), "model.network: expected xlnet to generate"),
        (
            ("export", "--weights=int8", "--output={0}/x"),
            "weights: expected float32 with model.net",
        ),
        (("convert", "--output={0}/hf", "--to=hf"), "model.network: expected xlnet to convert"),
    ],
)
def test_what_a_network_cannot_do_is_one_sentence(folder, arguments, sentence, capsys):
    verb, *rest = (argument.format(folder) for argument in arguments)
    model = {"convert": "source"}.get(verb, "model")
    assert cli.main([verb, *rest, f"--{model}={folder}/model"]) == 2
    error = capsys.readouterr().err.splitlines()
    assert sentence in error[-1]
