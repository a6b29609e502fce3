"""The modules and commands of docs/extending.md: extensions that the package knows nothing of."""

import json
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import yaml

from official import xlnet as package
from official.xlnet import cli
from official.xlnet.commands.extensions import import_extension
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.model import ModelConfig
from official.xlnet.configs.registry import (
    SERVICES,
)
from official.xlnet.configs.training import TrainingConfig
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.training.schedules import WarmupThenDecay
from tests.helpers.compiled import make_model
from tests.helpers.corpora import WORDS
from tests.helpers.documents import ROOT, blocks, commands
from tests.helpers.optimizers import check_optimizer
from tests.helpers.package.registered import nothing_is_kept
from tests.helpers.tiny import VOCAB, random_windows

pytestmark = pytest.mark.slow

PAGE = blocks(ROOT / "docs/extending.md")
MODULES = (
    "prefix_lm",
    "convolutions",
    "losses",
    "stars",
    "fortunes",
    "lion",
    "longest",
    "curve",
    "test_parts",
)
TINY = {
    "model": {
        "vocab_size": 300,
        "num_layers": 1,
        "d_model": 26,
        "num_heads": 2,
        "d_inner": 31,
        "mem_len": 0,
        "dropout": 0.0,
        "dropatt": 0.0,
        "init_std": 0.1,
    },
    "data": {"seq_len": 29, "reuse_len": 13, "num_predict": 5, "num_lanes": 4},
    "training": {"batch_size": 4, "num_steps": 3, "warmup_steps": 0, "checkpoint_steps": 3},
}


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """A directory that holds the modules of the page; nothing that they register is kept."""
    for block in PAGE:
        if block.language == "python":
            name = re.match(r"# (\w+\.py)\n", block.code)[1]
            (tmp_path / name).write_text(block.code + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with nothing_is_kept():
        yield tmp_path
    for name in MODULES:
        sys.modules.pop(name, None)


def xlnet(verb, *arguments):
    return cli.main([verb, *arguments])


def write_stars(path, number):
    """Lines with as many stars as there are words of praise, and one line without stars."""
    rng = np.random.default_rng(number)
    lines = ["no stars at all"]
    for n in range(number):
        level = n % 3
        words = [w for w in rng.choice(WORDS, 5) if w != "water"] + ["water"] * 2 * level
        lines.append("*" * (1 + level) + " " + " ".join(rng.permutation(words)))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lines


@pytest.mark.nightly
def test_the_commands_of_the_page(directory, vocab_file, capsys):
    (directory / "configs").mkdir()
    (directory / "configs/tiny.yaml").write_text(yaml.safe_dump(TINY))
    rng = np.random.default_rng(0)
    documents = [" ".join(rng.choice(WORDS, 40)) + "." for _ in range(200)]
    (directory / "corpus.txt").write_text("\n\n".join(documents), encoding="utf-8")
    (directory / "wise.fortune").write_text("\n%\n".join(documents) + "\n%\n", encoding="utf-8")
    shutil.copy(vocab_file, directory / "spiece.model")
    write_stars(directory / "train.txt", 60)
    lines = write_stars(directory / "dev.txt", 23)
    new = [line.lstrip("* ") for line in lines]
    (directory / "new.txt").write_text("\n".join(new) + "\n", encoding="utf-8")
    tokenizer = Tokenizer(vocab_file, lowercase=False, keep_accents=True)
    size = f"--set=vocab_size={tokenizer.vocab_size}"
    files = ("--input=corpus.txt", "--vocab=spiece.model", "--output=runs/data")
    assert xlnet("prepare", "--config=configs/tiny.yaml", *files, "--num_workers=1", size) == 0
    figures = {}
    for block in PAGE:
        for _, verb, *arguments in commands(block) if block.language == "sh" else ():
            if verb in ("pretrain", "prepare"):
                arguments += [size]
            if "--import=lion" in arguments:  # Its state is restored at the second step.
                arguments += ["--set=accumulate_steps=2", "--set=layer_decay=0.8"]
                assert xlnet(verb, *arguments, "--steps=2") == 0
            if verb == "prepare":  # In processes that have to import the module.
                arguments += ["--num_workers=2"]
            if verb == "finetune":
                arguments = [a for a in arguments if a != "--set=task.epochs=3"]
                arguments += ["--set=num_steps=60", "--set=learning_rate=0.01"]
                arguments += ["--set=warmup_steps=0", "--set=max_length=23"]
                arguments += ["--set=num_buckets=1"]
            if verb == "export":
                arguments += ["--buckets=23"]
            capsys.readouterr()
            assert xlnet(verb, *arguments) == 0, shlex.join([verb, *arguments])
            figures[verb] = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["prepare"]["documents"] == len(documents)
    assert len(figures["longest"]["lines"]) == 2
    assert figures["pretrain"]["step"] == 3
    assert np.isfinite(figures["pretrain"]["loss"])
    curve = (directory / "runs/curve/curve.csv").read_text().splitlines()
    assert curve[0] == "step,loss" and [line.split(",")[0] for line in curve[1:]] == ["1", "2", "3"]
    # Learned: one guess for all gets a third right.
    assert figures["finetune"]["accuracy"] > 0.6
    assert figures["finetune"]["train_without_stars"] == 1
    assert figures["evaluate"]["accuracy"] == figures["finetune"]["accuracy"]
    assert figures["predict"]["rows"] == len(new)
    rows = [json.loads(line) for line in (directory / "stars.jsonl").read_text().splitlines()]
    right = [
        row["stars"] == len(line) - len(line.lstrip("*"))
        for row, line in zip(rows, lines, strict=True)
    ]
    assert np.mean(right[1:]) == pytest.approx(figures["finetune"]["accuracy"])
    served = tf.saved_model.load(figures["export"]["path"])
    answers = served.signatures["serving_default"](text=tf.constant(new))
    assert answers["stars"].numpy().tolist() == [row["stars"] for row in rows]
    # A task without a service is not served, and says so.
    del SERVICES["stars"]
    assert xlnet("export", "--model=runs/stars", "--output=served") == 2
    assert "--head=encoder" in capsys.readouterr().err


@pytest.mark.nightly
def test_the_checks_of_the_page(directory):
    import_extension("test_parts")
    sys.modules["test_parts"].test_parts()


def test_further_losses_by_hand(directory):
    """In float64: what is logged, and what a step of gradient descent adds to a bias."""
    import_extension("losses")
    names, z, smoothing = "[z_loss, label_smoothing]", 0.3, 0.1
    model = make_model(auxiliary=names, auxiliary_weights=[z, smoothing], mem_len=0)
    model.compile(keras.optimizers.SGD(0.1))
    batch = random_windows(1)
    task, bias = model.make_permutation(batch), model.lm_head.bias.numpy()
    logits = model(task.inputs)["logits"].numpy().astype(np.float64)
    share = (task.mask_BP / tf.reduce_sum(task.mask_BP)).numpy()
    log_sum = np.log(np.exp(logits).sum(-1, keepdims=True))
    log_p, label = logits - log_sum, np.eye(VOCAB)[task.labels_BP.numpy()]
    entropy, target = -(log_p * label).sum(-1), (1 - smoothing) * label + smoothing / VOCAB
    losses = {"loss": entropy, "loss_z_loss": log_sum[..., 0] ** 2}
    losses["loss_label_smoothing"] = -log_p.mean(-1) - entropy
    logged = model.train_step(batch)
    for name, loss in losses.items():
        np.testing.assert_allclose(logged[name], (loss * share).sum(), rtol=1e-5)
    gradient = np.exp(log_p) * (1 + 2 * z * log_sum) - target
    change = -0.1 * np.einsum("bpv,bp->v", gradient, share)
    np.testing.assert_allclose(model.lm_head.bias - bias, change, atol=1e-6)


def test_a_key_of_an_extension(directory):
    tree = {"model": {"network": "convolutions", "kernel_size": 3, "mem_len": 0}}
    with pytest.raises(ConfigError, match=r"unknown key 'model\.kernel_size'"):
        XLNetConfig.from_dict(tree)
    import_extension("convolutions")
    config = XLNetConfig.from_dict(tree)
    config.save(str(directory))
    assert XLNetConfig.load(str(directory)).model.kernel_size == 3
    for wrong, message in (
        ("kernel_size=100", r"model\.kernel_size: expected in \[1, 99\], got 100"),
        ("kernel_size=wide", "kernel_size: expected an integer, got 'wide'"),
        ("kernel_sise=2", "did you mean 'model.kernel_size'"),
        ("mem_len=2", r"model\.mem_len: expected 0 with convolutions, got 2"),
    ):
        with pytest.raises(ConfigError, match=message):
            XLNetConfig.load(str(directory), [wrong])
    with pytest.raises(ConfigError, match=r"'model\.max_positions', which is already registered"):

        @package.register_settings("model")
        class Taken(ModelConfig):
            max_positions: int = 1


def test_an_optimizer_and_a_schedule(directory):
    import_extension("lion")
    check_optimizer("lion", directory)
    training = TrainingConfig(schedule="inverse_sqrt", learning_rate=0.3, warmup_steps=4)
    training.check()
    rate = WarmupThenDecay(**training.as_dict())
    found = [float(rate(step)) for step in (2, 4, 16, 100)]
    assert found == pytest.approx([0.15, 0.3, 0.15, 0.06], rel=1e-5)


def test_importing_a_reader_or_a_format_does_not_load_tensorflow():
    code = (
        "import sys; from official import xlnet; xlnet.register_reader('mine')(print);"
        "xlnet.register_format('mine')(print);"
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_the_task_of_the_page_is_complete(directory):
    import_extension("test_stars")
    sys.modules.pop("test_stars").test_stars()
