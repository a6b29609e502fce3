"""Rows in tables of the core's tests, see `tests/helpers/package/of_projects.py`."""

from tests.helpers.package.budgets import Budget, write_rows

WORDS = ("the", "water", "was", "made", "first", "people")


def labelled(number):
    """Row of a number below 36, whose text no other has: equal texts are in one fold."""
    first, second = WORDS[number % 6], WORDS[number // 6]
    return {"text": f"The cat sat {first} {second}.", "label": "ab"[number % 2]}


def runs_of(flag):
    """Budget of a verb of several runs by their number: models and graphs are freed."""

    def flags(world, folder, number):
        rows = write_rows(folder / "train.jsonl", 36, labelled)
        settings = ["max_length=23", "num_buckets=1", "num_steps=1", "warmup_steps=0"]
        given = ["--task=classification", f"--init_from={world.pretrained}", f"--train={rows}"]
        given += [f"--output={folder}/model", f"--{flag}={number}"]
        if flag != "folds":
            given.append(f"--dev={rows}")
        return [*given, *(f"--set={setting}" for setting in settings)]

    return Budget(flags, few=2 if flag == "folds" else 1, bytes_of_one=3e6)


BUDGETS = {
    "cross_validate": runs_of("folds"),
    "finetune_repeatedly": runs_of("runs"),
    "search_settings": runs_of("candidates"),
}
CALLERS_OF_FINE_TUNING = {"projects.trials.runs": {"folds": 2}}

# (verb, result, the line that says it).
COUNTED = [("cross_validate", {"folds": 5, "mean": 0.5}, "done: 5 folds, mean 0.5")]
