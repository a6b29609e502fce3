"""`xlnet inspect records`: what is shown is what the record and the draw say."""

import random
import re

import numpy as np
import pytest

from data_prep.pipelines.prepare import prepare
from official.xlnet.analysis.record_windows import as_text, read_window
from official.xlnet.analysis.window_page import as_html
from official.xlnet.configs.experiment import XLNetConfig
from tests.helpers.corpora import as_text as corpus_text
from tests.helpers.corpora import random_documents, vocabulary_dir
from tests.helpers.world import command


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Arguments of `prepare`; the last one is the folder of the data set."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "text.txt").write_text(corpus_text(random_documents(random.Random(3), 30)))
    data = {"seq_len": 41, "reuse_len": 17, "num_lanes": 4, "num_predict": 13}
    config = XLNetConfig.from_dict(
        {"model": {"vocab_size": 211}, "data": {**data, "target_ratio": 2.5, "max_span": 3}}
    )
    config.data.heldout_fraction = 0.0
    paths = [str(folder / "text.txt")], vocabulary_dir(), config, str(folder / "out")
    prepare(*paths, num_workers=1)
    return paths


def test_targets_are_drawn_as_the_configuration_of_the_data_set_says(paths):
    found = read_window(paths[3], lane=1, index=2)
    expected = read_window(paths[3], paths[2], lane=1, index=2)
    assert found.is_target.sum() == 13
    np.testing.assert_array_equal(found.is_target, expected.is_target)
    np.testing.assert_array_equal(found.order, expected.order)


@pytest.mark.parametrize("lane", [0, 1])
def test_masks_follow_the_rules_of_the_two_streams(paths, lane):
    window = read_window(paths[3], lane=lane, index=3, epoch=2)
    content, query = window.masks.content, window.masks.query
    assert len(repr(window)) < 600 and window._repr_png_().startswith(b"\x89PNG")
    half = window.part.count("reuse")
    assert half == 17 and len(window.pieces) == 41
    assert content.diagonal().all() and not query.diagonal().any()
    assert not content[:half, half:].any() and content[half:, :half].all()
    assert not query[~window.is_target].any()
    for i in np.flatnonzero(window.is_target):
        assert (query[i] == (content[i] & (window.order != window.order[i]))).all()
    context = ~window.is_target & (np.array(window.part) != "")
    for part in (slice(None, half), slice(half, None)):
        assert content[part, part][:, context[part]].all()
    assert window.is_reversed == bool(lane)


def test_text_names_every_target_and_its_step(paths):
    window = read_window(paths[3], lane=1, index=5)
    text = as_text(window, color=False)
    assert "direction: reversed" in text and "in reading order: " in text
    shown = sorted(int(step) for step in re.findall(r"\[[^\]]+ (\d+)\]", text))
    assert shown == sorted(window.order[window.is_target].tolist())
    assert text.count("¶") == window.is_document_end.sum()
    assert "\x1b[" in as_text(window, color=True) and "\x1b[" not in text
    another_epoch = read_window(paths[3], lane=1, index=5, epoch=1)
    assert another_epoch.pieces == window.pieces
    assert (another_epoch.order != window.order).any()


def test_command_writes_a_self_contained_page(paths, tmp_path, capsys):
    output = str(tmp_path / "page.html")
    found = command("inspect records", paths[3], lane=2, output=output)
    assert found["output"] == output and found["targets"] > 0
    page = as_html(read_window(paths[3], lane=2, index=0))
    assert (tmp_path / "page.html").read_text() == page
    assert page.count("data-i=") == 41 and not re.search(r"(src|href)=.(?!data:)", page)
    assert page.count("data:image/png;base64,") == 2
    for wrong, message in (
        (["records", paths[3], "--output=page.pdf"], ".html"),
        (["records", paths[3], "--layers=1"], "layers"),
        (["nothing"], "inspect attention, inspect records"),
        (["records", paths[3], "--lane=9"], "expected --lane from 0 to 3 in train, got 9"),
    ):
        command("inspect", *wrong, status=2)
        assert message in capsys.readouterr().err
