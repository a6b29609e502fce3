"""The world that is kept between runs: never half a part, never a changed one, two at a time."""

import os
import pathlib

import pytest

from tests.helpers import world as worlds
from tests.helpers.world import World, kept_world


def make(text, fails=False):
    def write(path):
        pathlib.Path(path).mkdir()
        pathlib.Path(path, "a").write_text(text)
        if fails:
            raise KeyboardInterrupt

    return write


def test_a_part_is_made_once_and_never_left_half(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        World(tmp_path)._part("x/y", make("half", fails=True))
    for text in ("whole", "other"):
        path = World(tmp_path)._part("x/y", make(text))
        assert pathlib.Path(path, "a").read_text() == "whole"


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_changed_part_is_an_error_and_made_anew(is_kept, tmp_path):
    world = World(tmp_path)
    file = pathlib.Path(world._part("x", make("good")), "a")
    world.check()
    file.write_text("evil")
    with pytest.raises(AssertionError, match=r"x has been changed.*x/a 4 "):
        World(tmp_path)._part("x", make("new")) if is_kept else world.check()
    assert pathlib.Path(World(tmp_path)._part("x", make("new")), "a").read_text() == "new"


def test_a_world_that_was_made_while_its_sources_changed_serves_only_that_run(
    tmp_path, monkeypatch
):
    roots = []
    for sources in ("old", worlds._LOADED, worlds._LOADED):
        monkeypatch.setattr(worlds, "_LOADED", sources)
        for _ in range(2):
            world = kept_world(tmp_path)
            world._part("x", make("any"))
            roots.append(world.root.name)
    assert roots == ["old", "old-", *4 * [worlds._LOADED]]


def test_two_worlds_are_kept_and_those_in_use(tmp_path, monkeypatch):
    used, kept = [], tmp_path / "worlds"
    for n in range(5):
        monkeypatch.setattr(worlds, "_LOADED", f"w{n}")
        used.append(kept_world(kept))
        os.utime(kept / f"w{n}", (n, n))
        if n > 1:
            used[n].used.close()
    assert {path.name for path in kept.iterdir()} == {"lock", "w0", "w1", "w3", "w4"}
