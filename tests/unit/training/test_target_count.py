"""The number of targets of windows, against a count by hand, and the warning where it is small."""

import random

import pytest
import tensorflow as tf
from absl import logging

from data_prep.pipelines.prepare import prepare
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.data.pretraining_dataset import pretraining_dataset
from official.xlnet.modeling.objectives import create_objective
from official.xlnet.runtime.history import read_history
from official.xlnet.training.pretraining import pretrain
from official.xlnet.training.target_count import (
    count_targets,
    targets_per_window,
)
from tests.helpers.corpora import as_text, random_documents, vocabulary_dir

NUM_PREDICT = 13


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Records of English, of words longer than any budget, and a configuration."""
    folder = tmp_path_factory.mktemp("targets")
    rng = random.Random(0)
    long_words = [["".join(rng.choices("aeiounrstl", k=300))] for _ in range(30)]
    config = make_config()
    for name, documents in (("short", random_documents(rng, 60)), ("long", long_words)):
        (folder / f"{name}.txt").write_text(as_text(documents))
        text = [str(folder / f"{name}.txt")]
        prepare(text, vocabulary_dir(), config, str(folder / name), num_workers=1)
    config.save(str(folder / "config"))
    return folder


def make_config(*changes):
    config = XLNetConfig.from_dict(
        {
            "model": {
                **{"vocab_size": 211, "num_layers": 1, "d_model": 22, "num_heads": 2},
                **{"d_inner": 29, "mem_len": 7},
            },
            "data": {
                **{"seq_len": 37, "reuse_len": 17, "num_predict": NUM_PREDICT, "num_lanes": 4},
                **{"target_ratio": 2.5, "heldout_fraction": 0.0},
            },
            "training": {"batch_size": 4, "num_steps": 1, "warmup_steps": 0, "jit_compile": False},
        }
    )
    for change in changes:
        config.set(change)
    return config


@pytest.fixture
def warnings(monkeypatch):
    found = []
    monkeypatch.setattr(logging, "warning", lambda text, *values: found.append(text % values))
    return found


def test_all_targets_of_text_with_spaces_and_no_warning(folder, warnings):
    counts = targets_per_window(make_config(), str(folder / "short"))
    assert counts["targets_per_window"] > NUM_PREDICT - 0.5
    assert counts["windows_without_targets"] == 0
    assert warnings == []


def test_count_is_that_of_256_windows_of_few_lanes(folder):
    config = make_config()
    counts = []
    for batch in pretraining_dataset(str(folder / "long"), 4, config=config).take(64).rebatch(37):
        mask = create_objective(ObjectiveSections.of(config))(batch).mask_BP
        rows = [int(tf.math.count_nonzero(row)) for row in mask]
        of_batch = sum(rows) / len(rows), rows.count(0) / len(rows), NUM_PREDICT
        assert count_targets(batch, ObjectiveSections.of(config)) == pytest.approx(of_batch)
        counts += rows
    found = targets_per_window(config, str(folder / "long"))
    mean, without = found["targets_per_window"], found["windows_without_targets"]
    assert mean == pytest.approx(sum(counts) / len(counts), abs=0.01) and mean < NUM_PREDICT / 2
    assert without == pytest.approx(counts.count(0) / 256, abs=1e-4) and without > 0


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ([], "set data.target_unit=token, as words of this text are long, or data.num_predict="),
        (["data.target_unit=token"], None),
        (["objective.kind=causal"], None),
    ],
)
def test_the_warning_says_what_to_set(folder, warnings, changes, advice):
    targets_per_window(make_config(*changes), str(folder / "long"))
    assert len(warnings) == (advice is not None)
    assert advice is None or advice in warnings[0]


def test_steps_without_targets_do_not_count(folder, warnings, tmp_path):
    config = make_config("data.num_predict=11", "training.num_steps=9", "batch_size=2")
    data = pretraining_dataset(str(folder / "long"), 2, config=config).take(9)
    sections = ObjectiveSections.of(config)
    drawn = [count_targets(batch, sections).mean for batch in data]
    assert 0 < drawn.count(0) < 9
    result = pretrain(config, str(folder / "long"), str(tmp_path / "some"))
    history = read_history(str(tmp_path / "some"))
    assert [line["step"] for line in history] == [1 + n for n in range(9) if drawn[n]]
    assert result["steps_without_targets"] == drawn.count(0)
    assert result["loss"] == pytest.approx(sum(line["loss"] for line in history) / len(history))
    assert result["loss"] > 3  # Nothing is learned yet, of 211 pieces.
    assert sum("steps without targets" in warning for warning in warnings) == 1
