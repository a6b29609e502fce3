"""What users see and CHANGELOG.md does not mention: see `tools/surface.py`."""

import copy
import json

import pytest

from tools import surface


@pytest.fixture(scope="module")
def now():
    return surface.surface()


def test_changes_since_the_last_release_are_in_the_changelog(now):
    released = json.loads(surface.FILE.read_text(encoding="utf-8"))
    changelog = surface.CHANGELOG.read_text(encoding="utf-8")
    missing = surface.unmentioned(surface.differences(released, now), changelog)
    assert not missing, "\n".join(map(str, missing))


# {entry: (its new default, or None where it is removed; the sentence; a line that mentions it)}
CHANGES = {
    "flag generate shouting": (
        "3",
        "Unreleased, Added: expected an item with `shouting` of `generate` (flag)",
        "- `xlnet generate` has `--shouting`.",
    ),
    "flag finetune dev": (
        "'10%'",
        "Unreleased, Changed: expected an item with `dev` of `finetune`, whose default is `'10%'`",
        "- The default of `--dev` of `finetune` is `10%`.",
    ),
    "key training polyak": (
        "0.0",
        "Unreleased, Added: expected an item with `polyak` of `training` (key)",
        "- `training.polyak` averages weights.",
    ),
    "name task.name classification": (
        None,
        "Unreleased, Removed: expected an item with `classification` of `task.name` (name)",
        "- The task `classification` has been removed.",
    ),
    "metric regression kendall": (
        "",
        "Unreleased, Added: expected an item with `kendall` of `regression` (metric)",
        "- Regression has the metric `kendall`.",
    ),
    "argument check_task seed": (
        "0",
        "Unreleased, Added: expected an item with `seed` of `check_task` (argument)",
        "- `check_task` has an argument `seed`.",
    ),
    "member Task judge": (
        "",
        "Unreleased, Added: expected an item with `judge` of `Task` (member)",
        "- A `Task` has a method `judge`.",
    ),
    "python Shout": (
        "",
        "Unreleased, Added: expected an item with `Shout` (python)",
        "- `xlnet.Shout` is new.",
    ),
}


@pytest.mark.parametrize("entry", CHANGES)
def test_a_change_needs_a_line_of_its_own(entry, now):
    default, sentence, line = CHANGES[entry]
    changed = copy.deepcopy(now)
    if default is None:
        del changed[surface.CORE][entry]
    else:
        changed[surface.CORE][entry] = default
    found = surface.differences(now, changed)
    text = "# Changelog\n\n## Unreleased\n\n### Added\n\n- Another `name`.\n{}\n## 1.0.0\n\n{}\n"
    (missing,) = surface.unmentioned(found, text.format("", line))
    assert sentence in str(missing)
    assert surface.unmentioned(found, text.format(line, "")) == []


def test_a_project_that_has_been_removed_is_no_change(now):
    others = {project: entries for project, entries in now.items() if project == surface.CORE}
    assert surface.differences(now, others) == surface.differences(others, now) == []


def test_the_surface_has_what_users_see(now):
    core = now[surface.CORE]
    assert core["flag finetune train"] == "required"
    assert core["key training optimizer"] == "'adamw'"
    assert core["member TextExample texts"] == "required"
    assert core.keys() >= {
        "verb pretrain",
        "flag finetune config",
        "name format jsonl",
        "metric ranking mrr",
    }
    assert core.keys() >= {"python finetune", "argument finetune train", "member Task evaluate"}
    assert "name format fasta" not in core
