"""Parts of the examples that are held out in turn."""

import random

import pytest

from official.xlnet.data.examples import TextExample
from official.xlnet.errors import DataError
from official.xlnet.projects.trials.folds import folds
from official.xlnet.tasks.token_classification import TaggedExample


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
