"""Parts of the examples that are held out in turn."""

import json
import pathlib
import random
from unittest import mock

import pytest

from official import xlnet
from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import DataError
from official.xlnet.projects.trials.folds import _summary, folds
from official.xlnet.tasks.token_classification import TaggedExample
from tests.helpers.corpora import vocabulary_dir
from tests.unit.api.test_finetuning_api import SHORT, TINY


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["texts", "words", "group", "group of words"])
def test_copies_or_groups_are_in_one_fold(kind):
    """So the held-out part does not tell what the model has seen; a common text joins no groups."""
    rng = random.Random(7)
    rows: list = []
    for n in range(131):
        text, group = f"text {rng.randrange(31)}", ""
        if kind.endswith("words"):
            group = f"patient {rng.randrange(17)}" if kind != "words" else ""
            rows.append(TaggedExample(str(n), (text, "b"), ("O", rng.choice("XY")), group))
            continue
        if kind == "group":
            text, group = rng.choice(["normal", text]), f"patient {rng.randrange(17)}"
        rows.append(TextExample(str(n), (text,), rng.choice("ab"), group=group))
    splits = list(folds(rows, 3, seed=2))
    for train, dev in splits:
        assert len(dev) > 5 and len(train) + len(dev) == len(rows)
        sides = [{getattr(row, kind.split()[0]) for row in part} for part in (train, dev)]
        assert not sides[0] & sides[1]
    assert sorted(row.id for _, dev in splits for row in dev) == sorted(row.id for row in rows)
    with pytest.raises(DataError, match=r"folds: expected at most \d+, the number of groups"):
        next(folds(rows, 130, seed=2))


def test_nothing_is_selected_on_the_part_of_a_fold_that_is_held_out(tmp_path):
    """The last step is evaluated, however good others would be; a run in a fold is resumed."""
    rows = [("the water" + " of" * n, "ab"[n % 2]) for n in range(12)]
    sets = [*SHORT, *TINY, "checkpoint_steps=1", "task.patience=1", "data.max_unknown=1"]
    settings = {
        "task": "classification",
        "folds": 2,
        "set": sets,
        "vocab": f"{vocabulary_dir()}/spiece.model",
    }
    worse = [InterruptedError, *({"accuracy": 1 - n / 99} for n in range(99))]
    with (
        mock.patch.object(TASKS["classification"], "evaluate", side_effect=worse),
        mock.patch.object(TASKS["classification"], "finish") as finish,
    ):
        with pytest.raises(InterruptedError):
            xlnet.finetune(None, rows, None, f"{tmp_path}/x", **settings)
        assert [*pathlib.Path(tmp_path, "x/folds/0/run").glob("ckpt-2.index")]
        xlnet.finetune(None, rows, None, f"{tmp_path}/x", **settings)
    runs = json.loads(pathlib.Path(tmp_path, "x/folds.json").read_text())["runs"]
    assert [run["metrics"]["step"] for run in runs] == [3, 3] and not finish.called


@pytest.mark.parametrize(
    ("scores", "mean", "over"),
    [
        ([0.5, 1.0], 0.75, None),
        ([0.5, None, 1.0], 0.75, "2 of 3 folds"),
        ([None, None], None, "0 of 2 folds"),
    ],
)
def test_a_mean_over_some_folds_says_how_many(scores, mean, over):
    runs = []
    for score in scores:
        runs.append({"metric": "f1", "metrics": {"f1": score}, "bag_of_words": None})
    summary = _summary(runs)
    assert summary["mean"] == mean and summary.get("mean_is_over") == over
