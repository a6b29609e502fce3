"""The number of targets of windows, against a count by hand, and the warning where it is small."""

import random

import pytest
import tensorflow as tf

from official.xlnet.api.pretrain import pretrain
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.data.pretraining_dataset import pretraining_dataset
from official.xlnet.modeling.objectives import create_objective
from official.xlnet.runtime.history import read_history
from official.xlnet.training.target_counts import TargetCount, count_targets, warn_of_few_targets
from tests.helpers.corpora import as_text
from tests.helpers.world import command


@pytest.fixture(scope="module")
def prepared(world, tmp_path_factory):
    """What `prepare` prints of a text, half of its words longer than the budget of targets."""
    folder, rng = tmp_path_factory.mktemp("targets"), random.Random(0)
    words = ["".join(rng.choices("aeiounrstl", k=rng.choice((4, 60)))) for _ in range(240)]
    documents = [[" ".join(words[n : n + 8])] for n in range(0, 240, 8)]
    (folder / "text.txt").write_text(as_text(documents))
    flags = {"vocab": world.vocab, "config": world.config, "output": folder / "data"}
    printed = command("prepare", "--num_workers=1", input=folder / "text.txt", **flags)
    return printed | {"data": str(folder / "data")}


def test_count_is_that_of_256_windows_of_few_lanes(world, prepared):
    config = XLNetConfig.load(world.config)
    sections, counts = ObjectiveSections.of(config), []
    batches = pretraining_dataset(prepared["data"], 6, config=config)
    for batch in batches.take(43).rebatch(37):
        mask = create_objective(sections)(batch).mask_BP
        rows = [int(tf.math.count_nonzero(row)) for row in mask]
        of_batch = sum(rows) / len(rows), rows.count(0) / len(rows), 5
        assert count_targets([batch], sections) == pytest.approx(of_batch)
        counts += rows
    mean, without = prepared["targets_per_window"], prepared["windows_without_targets"]
    assert mean == pytest.approx(sum(counts) / len(counts), abs=0.01) and mean < 2.5
    assert without == pytest.approx(counts.count(0) / len(counts), abs=1e-4) and without > 0


@pytest.mark.parametrize(
    ("settings", "count", "advice"),
    [
        ([], (3.2, 0.3, 5), "set data.target_unit=token, as words of this text are long, or data"),
        (["target_unit=token"], (12.3, 0, 13), "asks for 13: set data.num_predict=12, which"),
        (["target_unit=token"], (0.4, 0.6, 13), "set a larger data.num_predict"),
        (["target_unit=token"], (0.4, 0.6, 1), "(60% of the windows have none), but"),
        (["target_unit=token"], (12.4, 0, 13), None),
        (["objective.kind=causal"], (0.4, 0.6, 5), None),
    ],
)
def test_the_warning_says_what_to_set(world, caplog, settings, count, advice):
    sections = ObjectiveSections.of(XLNetConfig.load(world.config, settings))
    warn_of_few_targets(TargetCount(*count), sections)
    assert len(caplog.messages) == (advice is not None)
    assert advice is None or advice in caplog.messages[0]


@pytest.mark.usefixtures("eager")
def test_steps_without_targets_do_not_count(world, prepared, caplog, tmp_path):
    config = XLNetConfig.load(world.config, ["training.num_steps=6", "batch_size=2"])
    data, sections = prepared["data"], ObjectiveSections.of(config)
    batches = pretraining_dataset(data, 2, config=config).take(6)
    drawn = [count_targets([batch], sections).mean for batch in batches]
    assert 0 < drawn.count(0) < 6
    result, history = pretrain(config, data, str(tmp_path)), read_history(str(tmp_path))
    assert [line["step"] for line in history] == [1 + n for n in range(6) if drawn[n]]
    assert result["steps_without_targets"] == drawn.count(0)
    assert result["loss"] == pytest.approx(sum(line["loss"] for line in history) / len(history))
    for start in ("targets: ", "steps without targets"):
        assert sum(warning.startswith(start) for warning in caplog.messages) == 1
