"""`xlnet inspect records`: what is shown is what the record and the draw say."""

import json
import random
import re

import numpy as np
import pytest

from data_prep.pipelines.prepare import prepare
from official.xlnet import cli
from official.xlnet.analysis.record_windows import as_text, read_window
from official.xlnet.analysis.window_page import as_html, content_mask, query_mask
from official.xlnet.configs.experiment import XLNetConfig
from tests.helpers.corpora import as_text as corpus_text
from tests.helpers.corpora import data_config, random_documents, vocabulary_dir


@pytest.fixture(scope="module")
def data_set(tmp_path_factory):
    directory = tmp_path_factory.mktemp("data")
    text = corpus_text(random_documents(random.Random(2), 30))
    (directory / "text.txt").write_text(text, encoding="utf-8")
    config = data_config(seq_len=41, reuse_len=17, num_lanes=4)
    prepare(
        [str(directory / "text.txt")],
        vocabulary_dir(),
        config,
        str(directory / "out"),
        num_workers=1,
    )
    return str(directory / "out")


def test_targets_are_drawn_as_the_configuration_of_the_data_set_says(tmp_path):
    (tmp_path / "text.txt").write_text(corpus_text(random_documents(random.Random(3), 30)))
    data = {"seq_len": 41, "reuse_len": 17, "num_lanes": 4, "num_predict": 13}
    config = XLNetConfig.from_dict(
        {"model": {"vocab_size": 211}, "data": {**data, "target_ratio": 2.5, "max_span": 3}}
    )
    config.data.heldout_fraction = 0.0
    paths = [str(tmp_path / "text.txt")], vocabulary_dir(), config, str(tmp_path / "out")
    prepare(*paths, num_workers=1)
    found = read_window(paths[3], lane=1, index=2)
    expected = read_window(paths[3], config, lane=1, index=2)
    assert found.is_target.sum() == 13
    np.testing.assert_array_equal(found.is_target, expected.is_target)
    np.testing.assert_array_equal(found.order, expected.order)
    # Another recipe of the same records needs no new ones.
    config.data.num_predict = 7
    assert prepare(*paths, num_workers=1)["windows"] > 0


@pytest.mark.parametrize("lane", [0, 1])
def test_masks_follow_the_rules_of_the_two_streams(data_set, lane):
    window = read_window(data_set, lane=lane, index=3, epoch=2)
    content, query = content_mask(window), query_mask(window)
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


def test_text_names_every_target_and_its_step(data_set):
    window = read_window(data_set, lane=1, index=5)
    text = as_text(window, color=False)
    assert "direction: reversed" in text and "in reading order: " in text
    shown = sorted(int(step) for step in re.findall(r"\[[^\]]+ (\d+)\]", text))
    assert shown == sorted(window.order[window.is_target].tolist())
    assert text.count("¶") == window.is_document_end.sum()
    assert "\x1b[" in as_text(window, color=True) and "\x1b[" not in text
    another_epoch = read_window(data_set, lane=1, index=5, epoch=1)
    assert another_epoch.pieces == window.pieces
    assert (another_epoch.order != window.order).any()


def test_page_is_whole_and_self_contained(data_set):
    page = as_html(read_window(data_set, lane=0, index=4))
    assert page.count("data-i=") == 41
    assert not re.search(r"(src|href)=.(?!data:)", page)
    assert page.count("data:image/png;base64,") == 2
    assert "$" not in page.partition("<script>")[0].partition("</style>")[2].replace("$</", "")


def test_command(data_set, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["inspect", "records", data_set, "--lane=2", "--output=page.html"]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert figures["output"] == str(tmp_path / "page.html") and figures["targets"] > 0
    assert cli.main(["inspect", "records"]) == 2
    assert cli.main(["inspect", "records", data_set, "--output=page.pdf"]) == 2
    assert cli.main(["inspect", "records", data_set, "--layers=1"]) == 2
    assert cli.main(["inspect", "nothing"]) == 2
    assert cli.main(["inspect", "records", data_set, "--lane=9"]) == 2
    assert "expected --lane from 0 to 3 in train, got 9" in capsys.readouterr().err
