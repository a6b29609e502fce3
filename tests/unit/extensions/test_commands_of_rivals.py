"""The commands with the networks of rivals: from text to a served model, and what they refuse."""

import json

import numpy as np
import pytest
import tensorflow as tf
import yaml

from official.xlnet import cli
from tests.helpers.corpora import WORDS

pytestmark = pytest.mark.slow

MODEL = {
    "vocab_size": 2000,
    "num_layers": 2,
    "d_model": 26,
    "num_heads": 2,
    "d_inner": 31,
    "mem_len": 0,
    "max_positions": 37,
    "dropout": 0.1,
    "init_std": 0.1,
}
DATA = {"seq_len": 29, "reuse_len": 13, "num_predict": 4, "num_lanes": 4, "bidirectional": False}
TRAINING = {"batch_size": 4, "num_steps": 4, "warmup_steps": 0, "checkpoint_steps": 2}
SETTINGS = {
    "bert": ({"network": "bert"}, {"kind": "denoising", "next_sentence": True}),
    "gpt": ({"network": "gpt", "attention_type": "uni"}, {"kind": "causal"}),
}


def run(verb, *arguments):
    flags = cli.load_verb(verb).FLAGS
    for name in flags:
        flags[name].unparse()
    return cli.main([verb, *arguments])


def table(path, rng, number):
    """Texts about water, and others; returns the texts."""
    others = [word for word in WORDS if word != "water"]
    labels = rng.integers(0, 2, number)
    texts = [
        " ".join(rng.permutation([*rng.choice(others, rng.integers(3, 9)), *["water"] * 3 * label]))
        for label in labels
    ]
    rows = [f"{label}\t{text}" for label, text in zip(labels, texts, strict=True)]
    path.write_text("\n".join(["label\ttext", *rows]) + "\n")
    return texts


@pytest.fixture(scope="module", params=SETTINGS)
def made(request, tmp_path_factory, vocab_file):
    """(directory with model, tuned and tables; texts of dev) of a network."""
    directory = tmp_path_factory.mktemp(request.param)
    model, objective = SETTINGS[request.param]
    tree = {"model": MODEL | model, "data": DATA, "objective": objective, "training": TRAINING}
    (directory / "recipe.yaml").write_text(yaml.safe_dump(tree))
    rng = np.random.default_rng(0)
    documents = [" ".join(rng.choice(WORDS, 40)) + "." for _ in range(150)]
    (directory / "corpus.txt").write_text("\n\n".join(documents))
    table(directory / "train.tsv", rng, 80)
    texts = table(directory / "dev.tsv", rng, 23)
    recipe, data = f"--config={directory}/recipe.yaml", f"{directory}/data"
    files = (f"--input={directory}/corpus.txt", f"--vocab={vocab_file}", f"--output={data}")
    assert run("prepare", recipe, *files, "--num_workers=1") == 0
    assert run("pretrain", recipe, f"--data={data}", f"--model_dir={directory}/model") == 0
    tables = (f"--train={directory}/train.tsv", f"--dev={directory}/dev.tsv")
    sets = ("num_steps=60", "warmup_steps=0", "learning_rate=0.01", "task.summary=mean")
    sets += ("task.max_length=31", "task.num_buckets=1")
    tuned = (f"--init_from={directory}/model", f"--output={directory}/tuned")
    status = run(
        *("finetune", "--task=classification", *tables, *tuned),
        *(f"--set={value}" for value in sets),
    )
    assert status == 0
    return directory, texts


def last_line(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_pretraining_is_evaluated(made, capsys):
    directory, _ = made
    assert run("evaluate", f"--model={directory}/model", f"--data={directory}/data") == 0
    assert np.isfinite(last_line(capsys)["loss"])


def test_it_learns_a_task_and_every_way_of_prediction_agrees(made, capsys, tmp_path):
    directory, texts = made
    tuned = f"--model={directory}/tuned"
    assert run("evaluate", tuned, f"--data={directory}/dev.tsv") == 0
    accuracy = last_line(capsys)["accuracy"]
    assert accuracy > 0.8
    (tmp_path / "new.jsonl").write_text("".join(json.dumps({"text": x}) + "\n" for x in texts))
    output = f"--output={tmp_path}/rows.jsonl"
    assert run("predict", tuned, f"--input={tmp_path}/new.jsonl", output) == 0
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    labels = [row["label"] for row in rows]
    water = ["1" if "water" in text else "0" for text in texts]
    assert np.mean(np.array(labels) == np.array(water)) == pytest.approx(accuracy)
    assert run("export", tuned, f"--output={tmp_path}/served", "--buckets=31") == 0
    served = tf.saved_model.load(last_line(capsys)["path"])
    answers = served.signatures["serving_default"](text=tf.constant(texts))
    assert [label.decode() for label in answers["label"].numpy()] == labels


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("score", "--input={0}/corpus.txt"), "model.network: expected xlnet to score"),
        (("generate", "--text=the time"), "model.network: expected xlnet to score or generate"),
        (("export", "--head=lm", "--output={0}/lm"), "model.network: expected xlnet to score"),
        (
            ("inspect", "attention", "--text=the time", "--output={0}/a.png"),
            "model.network: expected xlnet to inspect a text",
        ),
        (
            ("inspect", "steps", "--text=the time", "--output={0}/a.png"),
            "model.network: expected xlnet to inspect a text",
        ),
        (
            ("export", "--weights=int8", "--output={0}/x"),
            "weights: expected float32 with model.net",
        ),
        (("convert", "--output={0}/hf", "--to=hf"), "model.network: expected xlnet to convert"),
    ],
)
def test_what_a_network_cannot_do_is_one_sentence(made, arguments, sentence, capsys):
    directory, _ = made
    verb, *rest = (argument.format(directory) for argument in arguments)
    model = {"convert": "source"}.get(verb, "model")
    assert cli.main([verb, *rest, f"--{model}={directory}/model"]) == 2
    error = capsys.readouterr().err.splitlines()
    assert sentence in error[-1]
