"""A run from text to evaluation: exact resume, what evaluation reports, what goes wrong."""

import collections
import contextlib
import itertools
import json
import math
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet import cli
from official.xlnet.checkpoints.checkpoint_files import newest_checkpoint
from official.xlnet.checkpoints.model_directory import load_encoder, load_pretrainer
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data import pretraining_dataset as reading
from official.xlnet.errors import PreemptedError
from official.xlnet.runtime.history import read_history
from official.xlnet.training.evaluation import evaluate
from official.xlnet.training.pretraining import pretrain
from tests.helpers.replicas.clusters import wait_for_step


@pytest.fixture(scope="module")
def files(world, tmp_path_factory):
    """A directory with `config.yaml` and the data set `data`; lanes end before the run does."""
    directory = tmp_path_factory.mktemp("pretrain")
    shutil.copy(world.config, directory / "config.yaml")
    shutil.copytree(world.data, directory / "data")
    return directory


@pytest.fixture(scope="module")
def config(files):
    return XLNetConfig.load(str(files / "config.yaml"))


@pytest.fixture(scope="module")
def model_dir(world):
    """The run that nobody interrupts; it evaluates and logs."""
    return world.pretrained


@pytest.fixture(scope="module")
def evaluated(files, model_dir):
    return evaluate(model_dir, str(files / "data"))


# The same command twice, the second time when a line is read.
TWICE = """
import sys
from official.xlnet import cli
status = cli.main()
print("status", status, file=sys.stderr, flush=True)
sys.stdin.readline()
cli.main()
"""


def lines_until(stream, start):
    """The lines of a stream, up to the first one that starts with `start`."""
    lines = []
    for line in stream:
        lines.append(line)
        if line.startswith(start):
            break
    return lines


def test_run_told_to_leave_and_then_killed_continues_as_if_nothing_had_been(
    files, config, model_dir, tmp_path
):
    wanted = [line["loss"] for line in read_history(model_dir)]
    lanes = json.loads((files / "data/manifest.json").read_text())["splits"]["train"]
    assert lanes["windows_per_lane"] < len(wanted), "the run should read some lanes twice"
    killed = str(tmp_path / "killed")
    flags = (f"--config={files / 'config.yaml'}", f"--data={files / 'data'}")
    command = [sys.executable, "-c", TWICE, "pretrain", *flags, f"--model_dir={killed}"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, **pipes) as process:
        moment = random.randint(4, 20)
        wait_for_step(process, killed, moment)
        process.send_signal(signal.SIGTERM)
        *_, last, status = lines_until(process.stderr, "status ")
        left = read_history(killed)
        assert status == f"status {PreemptedError.exit_status}\n"
        assert f"preempted at step {len(left)}; checkpoint saved in {killed}" in last
        assert newest_checkpoint(killed).record["step"] == len(left) >= moment

        moment = random.randint(len(left) + 1, 50)
        process.stdin.write("\n")
        process.stdin.flush()
        wait_for_step(process, killed, moment)
        process.kill()
        out, _ = process.communicate(timeout=300)
    before = read_history(killed)
    assert (process.returncode, out) == (-signal.SIGKILL, "")
    assert moment <= len(before) < len(wanted)

    figures = pretrain(config, str(files / "data"), killed)
    after = read_history(killed)
    assert figures["step"] == 60
    assert [line["step"] for line in after] == list(range(1, 61))
    np.testing.assert_allclose([line["loss"] for line in after], wanted, rtol=0, atol=1e-5)
    # What was lost with the kill was the same as what took its place.
    lost = [line["loss"] for line in before]
    np.testing.assert_allclose(lost, wanted[: len(lost)], rtol=0, atol=1e-5)
    reached, uninterrupted = load_pretrainer(killed), load_pretrainer(model_dir)
    for ours, theirs in zip(reached.weights, uninterrupted.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5, err_msg=ours.name)


def test_finished_run_is_left_alone(files, config, world, tmp_path):
    model_dir = str(shutil.copytree(world.pretrained, tmp_path / "model"))
    newest = tf.train.latest_checkpoint(model_dir)
    figures = pretrain(
        str(files / "config.yaml"), str(files / "data"), model_dir, ["training.learning_rate=0.1"]
    )
    assert XLNetConfig.load(model_dir).training.learning_rate == config.training.learning_rate
    losses = [line["loss"] for line in read_history(model_dir)]
    assert figures["step"] == 60
    assert figures["loss"] == pytest.approx(np.mean(losses))
    assert tf.train.latest_checkpoint(model_dir) == newest


def test_first_weights_from_another_model_and_a_limit_of_time(files, config, model_dir, tmp_path):
    data = str(files / "data")
    figures = pretrain(config, data, str(tmp_path), minutes=1e-6, init_from=model_dir)
    assert figures["step"] == 1
    # The schedule starts at 0, so the first step changes nothing.
    ours, theirs = load_encoder(str(tmp_path)), load_encoder(model_dir)
    for weight, expected in zip(ours.weights, theirs.weights, strict=True):
        np.testing.assert_array_equal(weight, expected, err_msg=weight.name)


def read_records(files, split):
    paths = sorted(map(str, (files / "data").glob(f"{split}-*.tfrecord")))
    for record in tf.data.TFRecordDataset(paths):
        feature = tf.train.Example.FromString(record.numpy()).features.feature
        yield {name: list(value.int64_list.value) for name, value in feature.items()}


def test_evaluation_counts_every_target_and_compares_with_word_counts(files, evaluated):
    figures = evaluated
    assert figures["perplexity"] == pytest.approx(math.exp(figures["loss"]))
    windows = list(read_records(files, "heldout"))
    assert 0.98 * 5 * len(windows) < figures["targets"] <= 5 * len(windows)
    # The cross entropy of held-out tokens under the counts is near that of a sample of them.
    counts = collections.Counter(
        itertools.chain.from_iterable(w["token_ids"] for w in read_records(files, "train"))
    )
    total = sum(counts[i] + 1 for i in range(9, 211)) + 9
    tokens = [i for window in windows for i in window["token_ids"] if i >= 9]
    expected = np.mean([-math.log((counts[i] + 1) / total) for i in tokens])
    assert figures["unigram_loss"] == pytest.approx(expected, rel=0.05)
    assert figures["loss"] < figures["unigram_loss"] + 1


def recorded_steps(model_dir):
    return sorted(int(path.stem[5:]) for path in model_dir.glob("ckpt-*.json"))


def flip_a_byte(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@contextlib.contextmanager
def full_disk():
    """No file of the process may grow beyond 32 KB."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 15, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_the_checkpoint_before_a_damaged_one_is_used_and_outlives_a_full_disk(
    files, model_dir, tmp_path, capfd
):
    copy = shutil.copytree(model_dir, tmp_path / "copy")
    *_, before, last = recorded_steps(copy)
    assert 50 < before < last == 60
    flip_a_byte(next(copy.glob("ckpt-60.data*")))
    with mock.patch("absl.logging.warning") as warning:
        saved = newest_checkpoint(str(copy))
    assert saved.record["step"] == before
    sentence = warning.call_args[0][0] % warning.call_args[0][1:]
    assert f"ckpt-60 is damaged: {copy}/ckpt-60.data-00000-of-00001: expected SHA-256" in sentence
    assert sentence.endswith(f"resuming from {copy}/ckpt-{before}")

    arguments = [f"--config={files / 'config.yaml'}", f"--data={files / 'data'}"]
    arguments = ["pretrain", *arguments, f"--model_dir={copy}"]
    capfd.readouterr()
    with full_disk():
        assert cli.main(arguments) == 2
    captured = capfd.readouterr()
    assert captured.out == "" and "File too large" in captured.err.splitlines()[-1]
    assert newest_checkpoint(str(copy)).record["step"] == before

    # The run goes on from there, and ends where it would have ended.
    assert cli.main(arguments) == 0
    assert json.loads(capfd.readouterr().out.splitlines()[-1])["step"] == 60
    assert recorded_steps(copy)[-2:] == [before, 60]
    reached, uninterrupted = load_pretrainer(str(copy)), load_pretrainer(model_dir)
    for ours, theirs in zip(reached.weights, uninterrupted.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5, err_msg=ours.name)

    for path in copy.glob("ckpt-*.data*"):
        path.write_bytes(path.read_bytes()[:1000])
    capfd.readouterr()
    assert cli.main(["evaluate", f"--model={copy}", f"--data={files / 'data'}"]) == 2
    assert_one_sentence(capfd, "no valid checkpoint: checkpoint")


def test_a_run_evaluates_and_logs_itself(model_dir, evaluated):
    """On held-out lanes, with a memory of their own; the best checkpoint stays."""
    logs = pathlib.Path(model_dir, "logs")
    scalars = {}
    for line in map(json.loads, (logs / "scalars.jsonl").read_text().splitlines()):
        step = line.pop("step")
        scalars.setdefault(step, {}).update(line)
    heldout = {
        s: figures["heldout_loss"] for s, figures in scalars.items() if "heldout_loss" in figures
    }
    assert sorted(scalars) == [10, 20, 30, 40, 50, 60]
    assert sorted(heldout) == [20, 40, 60]
    assert set(scalars[20]) == {
        *("loss", "perplexity", "learning_rate", "gradient_norm", "tokens_per_second"),
        *("memory_valid", "targets", "heldout_loss", "heldout_perplexity"),
    }
    assert scalars[20]["loss"] == pytest.approx(read_history(model_dir)[19]["loss"])
    # TensorBoard has the same.
    shown = collections.defaultdict(dict)
    for file in logs.glob("events*"):
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                shown[event.step][value.tag] = float(tf.make_ndarray(value.tensor))
    for step, figures in scalars.items():
        assert shown[step] == pytest.approx(figures)
    # The newest checkpoints and the best are left, and say what was measured.
    best = min(heldout, key=heldout.get)
    assert recorded_steps(pathlib.Path(model_dir)) == sorted({54, 60, best})
    assert newest_checkpoint(model_dir).record["heldout_loss"] == heldout[60]
    assert evaluated["loss"] == pytest.approx(heldout[60], abs=1e-4)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (["--data=nowhere"], "no data set at 'nowhere'"),
        (["--config=nowhere.yaml"], "no configuration at 'nowhere.yaml'"),
        (["--set=model.d_modle=3"], "unknown key 'model.d_modle'; did you mean 'd_model'?"),
        (["--set=data.reuse_len=26"], "data.reuse_len: expected below seq_len - 3 = 26"),
        (["--set=model.num_heads=3"], "model.num_heads: expected a divisor of d_model = 22, got 3"),
        (["--set=data.num_predict=29"], "data.num_predict: expected from 1 to seq_len - 3 = 26"),
        (["--set=data.seq_len=31"], "seq_len 29, but the configuration has data.seq_len 31"),
        (["--set=model.vocab_size=97"], "a vocabulary of 211 pieces"),
        (["--set=training.batch_size=12"], "training.batch_size: expected from 1 to 6"),
        (["--init_from=nowhere"], "nowhere"),
        (["--set=num_layers=3"], "model.num_layers: expected 1, as in the model in"),
        (["--set=training.seed=4"], "training.seed: expected 0, as in the model in"),
        (["--set=training.on_bad_step=wait"], "training.on_bad_step: expected one of stop, skip"),
        (["--strategy=tpu"], "strategy: tpu cannot be used here"),
        (["--cpu_devices=2"], "cpu_devices: TensorFlow is already initialized"),
        (["--model_dir=/sys/model"], "/sys/model"),
    ],
)
def test_wrong_input_is_one_sentence_and_status_2(files, model_dir, change, sentence, capfd):
    arguments = {
        "--config": files / "config.yaml",
        "--data": files / "data",
        "--model_dir": model_dir,
    }
    known = [f"{name}={value}" for name, value in arguments.items()]
    assert cli.main(["pretrain", *known, *change]) == 2
    assert_one_sentence(capfd, sentence)


@pytest.mark.parametrize("split", ["train", "heldout"])
@pytest.mark.parametrize("is_large", [False, True])
def test_a_broken_record_is_one_sentence(files, split, is_large, tmp_path, capfd, monkeypatch):
    """Before anything is written; in a data set too large for checksums, once it is read."""
    monkeypatch.setattr(reading, "_CHECKSUM_LIMIT_BYTES", 0 if is_large else 1 << 30)
    copy = shutil.copytree(files / "data", tmp_path / "data")
    damaged = sorted(copy.glob(f"{split}-*"))[1]
    flip_a_byte(damaged)
    arguments = [f"--config={files / 'config.yaml'}", f"--data={copy}"]
    arguments += [f"--model_dir={tmp_path / 'model'}", "--set=evaluation_steps=2", "--steps=2"]
    assert cli.main(["pretrain", *arguments]) == 2
    error = capfd.readouterr().err.splitlines()
    assert f"{damaged.name}: expected SHA-256" in error[-1]
    assert (tmp_path / "model").exists() == is_large == (len(error) > 1)


def assert_one_sentence(capfd, sentence):
    captured = capfd.readouterr()
    assert sentence in captured.err
    assert len(captured.err.splitlines()) == 1, captured.err
    assert captured.out == ""
