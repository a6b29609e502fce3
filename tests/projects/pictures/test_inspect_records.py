"""`xlnet inspect records`: what is shown is what the record and the draw say."""

import re

import numpy as np
import pytest

from benchmarks.data.random_records import write_data_set
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.projects.pictures.record_windows import as_text, read_window
from official.xlnet.projects.pictures.window_page import as_html
from tests.helpers.world import command
from tests.helpers.wrong.faulty_records import FAULTS, LANES, REUSE, WINDOWS, T, write_faulty_lane
from tests.helpers.wrong.promises import attempt


def test_targets_are_drawn_as_the_configuration_of_the_data_set_says(world):
    found = read_window(world.data, lane=1, index=2)
    expected = read_window(world.data, XLNetConfig.load(world.config), lane=1, index=2)
    assert 0 < found.is_target.sum() <= 5
    np.testing.assert_array_equal(found.is_target, expected.is_target)
    np.testing.assert_array_equal(found.order, expected.order)


@pytest.mark.parametrize("lane", [0, 1])
def test_the_first_part_never_sees_the_second(world, lane):
    window = read_window(world.data, lane=lane, index=3, epoch=2)
    assert len(repr(window)) < 600 and window._repr_png_().startswith(b"\x89PNG")
    assert window.part.count("reuse") == 11 and len(window.pieces) == 29
    content, query = window.masks.content, window.masks.query
    assert not content[:11, 11:].any() and content[11:, :11].all()
    assert not query.diagonal().any() and not query[~window.is_target].any()
    assert window.is_reversed == bool(lane)


def test_text_names_every_target_and_its_step(world):
    window = read_window(world.data, lane=1, index=5)
    text = as_text(window, color=False)
    assert "direction: reversed" in text and "in reading order: " in text
    shown = sorted(int(step) for step in re.findall(r"\[[^\]]+ (\d+)\]", text))
    assert shown == sorted(window.order[window.is_target].tolist())
    assert text.count("¶") == window.is_document_end.sum()
    assert "\x1b[" in as_text(window, color=True) and "\x1b[" not in text
    another_epoch = read_window(world.data, lane=1, index=5, epoch=1)
    assert another_epoch.pieces == window.pieces
    assert (another_epoch.order != window.order).any()


def test_command_writes_a_self_contained_page(world, tmp_path, capsys):
    output = str(tmp_path / "page.html")
    where = {"lane": 2, "index": 1, "epoch": 3}
    found = command("inspect records", world.data, split="heldout", output=output, **where)
    assert found["output"] == output and found["targets"] > 0
    page = as_html(read_window(world.data, split="heldout", **where))
    assert (tmp_path / "page.html").read_text() == page
    assert page.count("data-i=") == 29 and not re.search(r"(src|href)=.(?!data:)", page)
    assert page.count("data:image/png;base64,") == 2
    for wrong, message in (
        (["records", world.data, "--output=page.pdf"], ".html"),
        (["records", world.data, "--layers=1"], "layers"),
        (["nothing"], "inspect attention, inspect records"),
        (["recods"], "unknown verb 'inspect recods'; did you mean 'inspect records'?"),
        (["runs"], "inspect runs was removed: tensorboard --logdir=DIR shows the curves of runs"),
        (
            ["steps"],
            "inspect steps was removed: use official.xlnet.projects.pictures.attention_maps",
        ),
        (["records", world.data, "--lane=9"], "expected --lane from 0 to 5 in train, got 9"),
    ):
        command("inspect", *wrong, status=2)
        assert message in capsys.readouterr().err


def test_the_configuration_is_not_replaced(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.npy").write_bytes(b"what would be lost\n")
    (tmp_path / "link").symlink_to("texts.npy")
    for output in ("texts.npy", "./texts.npy", "link"):
        command("inspect records", "data", config="texts.npy", output=output, status=2)
        assert "--output: expected another file than the input" in capsys.readouterr().err
    assert (tmp_path / "texts.npy").read_bytes() == b"what would be lost\n"


@pytest.mark.parametrize("name", FAULTS)
def test_windows_of_a_faulty_writer_are_a_page_or_a_sentence(tmp_path, name):
    path = str(tmp_path)
    write_faulty_lane(path, write_data_set(path, T, REUSE, LANES, WINDOWS), name)
    attempt(lambda: as_html(read_window(path, lane=2, index=2)))
