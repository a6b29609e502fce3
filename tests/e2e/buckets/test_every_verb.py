"""Every verb with URLs in its flags, on TensorFlow's file system in memory, in one process."""

import json

import numpy as np
import pytest
import tensorflow as tf

from official import xlnet
from official.xlnet.files import file_system
from tests.helpers.wrong_input import make_world, refused, run

NOT_COMPILED = "--set=training.jit_compile=false"  # Starts sooner.


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The folder of small inputs of `make_world`, and its copy in a bucket in memory."""
    local, url = tmp_path_factory.mktemp("world"), "ram://bucket/world"
    make_world(local)
    for path in local.rglob("*"):
        if path.is_file():
            file_system.upload(str(path), f"{url}/{path.relative_to(local)}")
    return local, url


def verbs(root):
    """{verb: arguments}: each writes to its own place below `root`, and reads what was written."""
    model, task = f"{root}/model", f"{root}/task"
    pretrain = [
        *("pretrain", f"--config={root}/config.yaml", f"--data={root}/prepared"),
        *(f"--model_dir={model}", NOT_COMPILED),
    ]
    return {
        "vocab": ["vocab", f"--input={root}/te*t.txt", f"--output={root}/v", "--size=150"],
        "prepare": [
            *("prepare", f"--input={root}/text.txt", f"--vocab={root}/vocab"),
            *(f"--config={root}/config.yaml", f"--output={root}/prepared", "--num_workers=1"),
        ],
        "prepare on beam": [
            *("prepare", f"--input={root}/text.txt", f"--vocab={root}/vocab"),
            *(f"--config={root}/config.yaml", f"--output={root}/on_beam"),
            "--runner=DirectRunner",
        ],
        "pretrain": [*pretrain, "--steps=2"],
        "continue": [*pretrain, "--set=keep_checkpoints=1"],
        "evaluate": ["evaluate", f"--model={model}", f"--data={root}/prepared"],
        "score": [
            *("score", f"--model={model}", f"--input={root}/texts.txt"),
            f"--output={root}/scores.jsonl",
        ],
        "generate": [
            *("generate", f"--model={model}", f"--input={root}/texts.txt"),
            *("--num_tokens=2", f"--output={root}/generated.jsonl"),
        ],
        "embed": [
            *("embed", f"--model={model}", f"--input={root}/texts.txt"),
            f"--output={root}/vectors.jsonl",
        ],
        "extend": [
            *("vocab", f"--extend={model}", f"--input={root}/te*t.txt", "--size=+9"),
            f"--output={root}/extended",
        ],
        "convert": ["convert", f"--source={model}", f"--output={root}/hf", "--to=hf"],
        "convert back": ["convert", f"--source={root}/hf", f"--output={root}/again"],
        "convert tf1": ["convert", f"--source={model}", f"--output={root}/tf1", "--to=tf1"],
        "finetune": [
            *("finetune", "--task=classification", f"--init_from={root}/again"),
            *(f"--train={root}/train.tsv", f"--dev={root}/dev.tsv", f"--output={task}"),
            *("--set=max_length=23", "--set=num_steps=2", "--set=warmup_steps=0"),
            "--set=num_buckets=1",
            *("--set=training.batch_size=7", NOT_COMPILED),
        ],
        "evaluate task": [
            *("evaluate", f"--model={task}", f"--data={root}/dev.tsv"),
            f"--output={root}/report",
        ],
        "predict": [
            *("predict", f"--model={task}", f"--input={root}/dev.tsv"),
            f"--output={root}/predictions.jsonl",
        ],
        "export": ["export", f"--model={task}", f"--output={root}/exported"],
        "inspect records": [
            *("inspect", "records", f"{root}/prepared", f"--output={root}/window.html"),
        ],
        "inspect attention": [
            *("inspect", "attention", f"--model={model}", "--text=the water"),
            f"--output={root}/attention.html",
        ],
        "inspect runs": ["inspect", "runs", model, task, f"--output={root}/curves.png"],
    }


# What the clock decides, or chance in the graph of a SavedModel.
VARYING = ("tokens_per_second", "texts_per_second", "rows_per_second", "bytes")
# Its text has no path and no time: equal, byte for byte.
SAME = [
    *("v/spiece.model", "prepared/train-00000-of-00006.tfrecord", "prepared/spiece.model"),
    *("on_beam/train-00005-of-00006.tfrecord", "scores.jsonl", "generated.jsonl"),
    *("vectors.jsonl", "predictions.jsonl", "report/predictions.jsonl", "model/history.jsonl"),
    *("window.html", "hf/model.safetensors", "task/metrics.json"),
]


@pytest.mark.slow
def test_every_verb_gives_the_same_on_a_bucket_as_on_a_disk(world, capfd):
    local, url = world
    on_disk, in_bucket = verbs(local), verbs(url)
    for verb in on_disk:
        first = run(capfd, *on_disk[verb])
        second = run(capfd, *in_bucket[verb])
        assert first.status == 0, (verb, first.err)
        assert second.status == 0, (verb, second.err)
        assert "xlnet-" not in second.out, verb  # No path of a stage.
        expected = json.loads(json.dumps(first.result).replace(str(local), url))
        for name in (*VARYING, "targets_per_window"):  # Not counted in a bucket.
            expected.pop(name, None)
        assert {name: second.result[name] for name in expected} == expected, verb
    for name in SAME:
        assert file_system.read_bytes(f"{url}/{name}") == (local / name).read_bytes(), name
    assert second.result["output"] == f"{url}/curves.png"


@pytest.mark.slow
def test_what_is_in_the_bucket_is_what_is_on_the_disk(world):
    """No lock, no file of a stage, no checkpoint that retention removed; needs the test before."""
    local, url = world

    def names(files):
        return {name.partition(".out.tfevents")[0] for name in files}

    for folder in ("model", "task", "exported", "again", "tf1", "report", "prepared", "on_beam"):
        on_disk = (local / folder).rglob("*")
        expected = {str(p.relative_to(local / folder)) for p in on_disk if p.is_file()}
        assert names(file_system.tree(f"{url}/{folder}")) == names(expected), folder
    loaded = tf.saved_model.load(f"{url}/exported/1")
    assert "serving_default" in loaded.signatures


@pytest.mark.slow
def test_models_are_loaded_from_urls_in_python(world):
    local, url = world
    texts = ["the water was made first", "but not now"]
    for folder in ("model", "task"):
        expected = xlnet.embed(str(local / folder), texts)
        np.testing.assert_array_equal(xlnet.embed(f"{url}/{folder}", texts), expected)
    expected = xlnet.predict(str(local / "task"), texts)
    assert xlnet.predict(f"{url}/task", texts) == expected


def test_wrong_input_in_a_bucket_is_one_sentence_with_its_url(world, capfd):
    _, url = world
    missing = run(capfd, "score", f"--model={url}/nothing", "--text=the")
    assert f"'{url}/nothing'" in refused(missing)
    wrong = verbs(url)["prepare"]
    wrong[1] = f"--input={url}/nothing*.txt"
    assert f"no input file matches '{url}/nothing*.txt'" in refused(run(capfd, *wrong))
    damaged = run(capfd, "evaluate", f"--model={url}/language", f"--data={url}/vocab")
    assert f"'{url}/vocab'" in refused(damaged)


def test_several_workers_cannot_write_to_a_bucket(world, capfd):
    _, url = world
    arguments = [*verbs(url)["pretrain"], "--strategy=multi_worker"]
    assert "a directory that all workers mount" in refused(run(capfd, *arguments))
