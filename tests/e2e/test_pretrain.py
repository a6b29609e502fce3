"""A run from text to evaluation: exact resume, what evaluation reports, what goes wrong."""

import collections
import itertools
import json
import math
import pathlib
import shutil
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.api.pretrain import pretrain
from official.xlnet.checkpoints.checkpoint_files import newest_checkpoint
from official.xlnet.checkpoints.pretrained_directory import load_pretrainer
from official.xlnet.checkpoints.restoring import load_encoder
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data import pretraining_dataset as reading
from official.xlnet.errors import ConfigError
from official.xlnet.training.evaluation import evaluate
from tests.helpers.corpora import read_lane
from tests.helpers.runs import losses_of
from tests.helpers.world import with_last_values
from tests.helpers.wrong_input import full_disk, refused, run


@pytest.fixture(scope="module")
def evaluated(world):
    return evaluate(world.pretrained, world.data)


def arguments(world, **changes):
    """The command of the world's run, which nobody interrupts; it evaluates and logs."""
    paths = {"config": world.config, "data": world.data, "output": world.pretrained}
    return ["pretrain", *(f"--{name}={value}" for name, value in (paths | changes).items())]


def assert_same_weights(model_dir, other, load=load_pretrainer):
    for ours, theirs in zip(load(str(model_dir)).weights, load(other).weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5, err_msg=ours.name)


def test_finished_run_is_left_alone_and_says_so(world, tmp_path, caplog):
    model_dir = str(shutil.copytree(world.pretrained, tmp_path / "model"))
    newest = tf.train.latest_checkpoint(model_dir)
    figures = pretrain(world.config, world.data, model_dir, ["training.learning_rate=0.1"])
    assert "at step 60, without training.learning_rate=0.1 (was 0.003)" in caplog.text
    assert XLNetConfig.load(model_dir).training.learning_rate == 0.003
    assert figures["step"] == 60
    assert figures["loss"] == pytest.approx(np.mean(losses_of(model_dir)))
    assert tf.train.latest_checkpoint(model_dir) == newest
    for number in (1, 10):  # Of a longer run: of its last 100 steps, so many of which have a line.
        lines = [{"step": n, "loss": n**2} for n in range(number - 140, 61, number)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        pathlib.Path(model_dir, "history.jsonl").write_text(text)
        found = pretrain(world.config, world.data, model_dir)["loss"]
        assert found == np.mean([line["loss"] for line in lines if line["step"] > 60 - 100])


@pytest.mark.slow
@pytest.mark.usefixtures("eager")
def test_first_weights_from_another_model_and_a_limit_of_time(world, tmp_path, capsys):
    """The schedule starts at 0, so the first step changes nothing; a resumed run says what does."""
    start = {"minutes": 1e-6, "init_from": world.pretrained}
    config = XLNetConfig.load(world.config)
    wrong, right = ["training.learning_rte=1.0"], ["training.learning_rate=0.07"]
    with pytest.raises(
        ConfigError, match=r"learning_rte.*did you mean 'training.learning_rate|rate"
    ):
        pretrain(config, world.data, str(tmp_path), wrong, **start)
    figures = pretrain(config, world.data, str(tmp_path), right, **start)
    assert figures["step"] == 1 and config.training.learning_rate == 0.003
    assert XLNetConfig.load(str(tmp_path)).training.learning_rate == 0.07
    assert_same_weights(tmp_path, world.pretrained, load_encoder)
    assert not (tmp_path / "events.jsonl").exists()
    capsys.readouterr()
    other = ["training.learning_rate=0.001", "training.num_steps=70"]
    assert pretrain(config, world.data, str(tmp_path), other, **start)["step"] == 2
    said = "training.num_steps 60 -> 70, training.learning_rate 0.07 -> 0.001 from step 1"
    assert said in capsys.readouterr().err
    [event] = map(json.loads, (tmp_path / "events.jsonl").read_text().splitlines())
    changes = {"training.learning_rate": [0.07, 0.001], "training.num_steps": [60, 70]}
    assert event == {"event": "changed settings", "step": 1, "changes": changes}


def tokens(world, split):
    """Tokens of each window of a split."""
    lanes = map(read_lane, pathlib.Path(world.data).glob(f"{split}-*.tfrecord"))
    return [window["token_ids"] for window in itertools.chain.from_iterable(lanes)]


def test_evaluation_counts_every_target_and_compares_with_word_counts(world, evaluated):
    assert set(evaluated) == {"loss", "unigram_loss", "perplexity", "targets"}
    assert evaluated["perplexity"] == pytest.approx(math.exp(evaluated["loss"]))
    windows = tokens(world, "heldout")
    assert 0.98 * 5 * len(windows) < evaluated["targets"] <= 5 * len(windows)
    # The cross entropy of held-out tokens under the counts is near that of a sample of them.
    counts = collections.Counter(itertools.chain.from_iterable(tokens(world, "train")))
    total = sum(counts[i] + 1 for i in range(9, 211)) + 9
    heldout = [i for window in windows for i in window if i >= 9]
    expected = np.mean([-math.log((counts[i] + 1) / total) for i in heldout])
    assert evaluated["unigram_loss"] == pytest.approx(expected, rel=0.05)
    assert evaluated["loss"] < evaluated["unigram_loss"] + 1


def recorded_steps(model_dir):
    return sorted(int(path.stem[5:]) for path in pathlib.Path(model_dir).glob("ckpt-*.json"))


def flip_a_byte(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.usefixtures("eager")
def test_the_checkpoint_before_a_damaged_one_is_used_and_outlives_a_full_disk(
    world, tmp_path, capfd
):
    copy = shutil.copytree(world.pretrained, tmp_path / "copy")
    *_, before, last = recorded_steps(copy)
    assert 50 < before < last == 60
    flip_a_byte(next(copy.glob("ckpt-60.data*")))
    with mock.patch("absl.logging.warning") as warning:
        assert newest_checkpoint(str(copy)).record["step"] == before
    sentence = warning.call_args[0][0] % warning.call_args[0][1:]
    assert f"ckpt-60 is damaged: {copy}/ckpt-60.data-00000-of-00001: expected SHA-256" in sentence
    assert sentence.endswith(f"resuming from {copy}/ckpt-{before}")

    with full_disk(1 << 15):
        full = run(capfd, *arguments(world, output=copy))
    assert (full.status, full.out) == (2, "") and "File too large" in full.err.splitlines()[-1]
    assert newest_checkpoint(str(copy)).record["step"] == before

    # The run goes on from there, and ends where it would have ended.
    assert run(capfd, *arguments(world, output=copy)).result["step"] == 60
    assert recorded_steps(copy)[-2:] == [before, 60]
    assert_same_weights(copy, world.pretrained)

    for path in copy.glob("ckpt-*.data*"):
        path.write_bytes(path.read_bytes()[:1000])
    nothing = run(capfd, "evaluate", f"--model={copy}", f"--data={world.data}")
    assert "no valid checkpoint: checkpoint" in refused(nothing)


def test_a_run_evaluates_and_logs_itself(world, evaluated):
    """On held-out lanes, with a memory of their own; the best checkpoint stays."""
    logs, scalars = pathlib.Path(world.pretrained, "logs"), collections.defaultdict(dict)
    for line in map(json.loads, (logs / "scalars.jsonl").read_text().splitlines()):
        scalars[line.pop("step")].update(line)
    heldout = {s: row["heldout_loss"] for s, row in scalars.items() if "heldout_loss" in row}
    assert sorted(scalars) == [10, 20, 30, 40, 50, 60] and sorted(heldout) == [20, 40, 60]
    assert set(scalars[20]) == {
        *("loss", "perplexity", "learning_rate", "gradient_norm", "tokens_per_second"),
        *("memory_valid", "targets", "heldout_loss", "heldout_perplexity"),
    }
    assert scalars[20]["loss"] == pytest.approx(losses_of(world.pretrained)[19])
    # The newest checkpoints and the best are left, and say what was measured.
    best = min(heldout, key=heldout.get)
    assert recorded_steps(world.pretrained) == sorted({54, 60, best})
    assert newest_checkpoint(world.pretrained).record["heldout_loss"] == heldout[60]
    assert evaluated["loss"] == pytest.approx(heldout[60], abs=1e-4)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (["--data=nowhere"], "no data set at 'nowhere'"),
        (["--config=nowhere.yaml"], "no configuration at 'nowhere.yaml'"),
        (["--set=model.d_modle=3"], "unknown key 'model.d_modle'; did you mean 'model.d_model'?"),
        (
            ["--set=model.d_model.a=3"],
            "unknown key 'model.d_model.a'; did you mean 'model.d_model'?",
        ),
        (["--set=data.reuse_len=26"], "data.reuse_len: expected below seq_len - 3 = 26"),
        (["--set=model.num_heads=3"], "model.num_heads: expected a divisor of d_model = 22, got 3"),
        (["--set=data.num_predict=29"], "data.num_predict: expected from 1 to seq_len - 3 = 26"),
        (["--set=data.seq_len=31"], "seq_len 29, but the configuration has data.seq_len 31"),
        (["--set=model.vocab_size=97"], "a vocabulary of 211 pieces"),
        (["--set=training.batch_size=12"], "training.batch_size: expected from 1 to 6"),
        (["--init_from=nowhere"], "nowhere"),
        (["--set=num_layers=3"], "model.num_layers: expected 1, as in the model in"),
        (["--set=training.seed=4"], "training.seed: expected 0, as in the model in"),
        (["--set=training.freeze_layers=1"], "training.freeze_layers: expected 0, as in the model"),
        (
            ["--set=training.lora_rank=1"],
            "training.lora_rank: expected 0, as only fine-tuning reads it",
        ),
        (["--strategy=tpu"], "strategy: tpu cannot be used here"),
        (["--cpu_devices=2"], "cpu_devices: TensorFlow is already initialized"),
        (["--output=/sys/model"], "/sys/model"),
    ],
)
def test_wrong_input_is_one_sentence_and_status_2(world, change, sentence, capfd):
    assert sentence in refused(run(capfd, *with_last_values([*arguments(world), *change])))


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("split", ["train", pytest.param("heldout", marks=pytest.mark.slow)])
@pytest.mark.parametrize("is_large", [False, True])
def test_a_broken_record_is_one_sentence(world, split, is_large, tmp_path, capfd, monkeypatch):
    """Before anything is written; in a data set too large for checksums, once it is read."""
    monkeypatch.setattr(reading, "_CHECKSUM_LIMIT_BYTES", 0 if is_large else 1 << 30)
    copy = shutil.copytree(world.data, tmp_path / "data")
    damaged = sorted(copy.glob(f"{split}-*"))[1]
    flip_a_byte(damaged)
    command = arguments(world, data=copy, output=tmp_path / "model", steps=2)
    outcome = run(capfd, *command, "--set=evaluation_steps=2")
    error = outcome.err.splitlines()
    assert outcome.status == 2 and f"{damaged.name}: expected SHA-256" in error[-1]
    assert (tmp_path / "model").exists() == is_large == (len(error) > 1)
