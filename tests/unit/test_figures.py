"""Pictures are as new as what they show; README and home of the site say the same."""

import re
import shutil

from benchmarks.reports import figures
from tests.helpers.documents import ROOT, blocks

DOCS = ROOT / "docs"
IMAGE = re.compile(r"!\[[^\]]*\]\((?:docs/)?images/(\w+)\.png\)")


def test_no_picture_is_older_than_what_it_shows():
    assert figures.older(DOCS) == [], "make figures"
    assert {path.stem for path in (DOCS / "images").iterdir()} == set(figures.PICTURES)
    pages = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    assert set(IMAGE.findall(pages)) == set(figures.PICTURES)


def test_a_picture_is_older_once_its_table_has_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "PICTURES", {"records": figures.PICTURES["records"]})
    page = tmp_path / "data_preparation.md"
    shutil.copy(DOCS / page.name, page)
    assert figures.older(tmp_path) == ["records"]
    figures.draw(["records"], tmp_path)
    assert figures.older(tmp_path) == []
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("| 2,253,000 |", "| 2,254,000 |"), encoding="utf-8")
    assert figures.older(tmp_path) == ["records"]


def test_readme_and_home_show_the_same_code_and_results():
    readme, home = ROOT / "README.md", DOCS / "index.md"
    codes = [{block.code for block in blocks(path) if block.is_run} for path in (readme, home)]
    assert codes[0] == codes[1]
    texts = [path.read_text(encoding="utf-8") for path in (readme, home)]
    commands = [re.findall(r"^`([^`]+)`: \[", text, re.MULTILINE) for text in texts]
    assert commands[0] == commands[1] and IMAGE.findall(texts[0]) == IMAGE.findall(texts[1])
    introductions = [
        text.partition("# XLNet for TensorFlow\n")[2].split("\n\n")[0] for text in texts
    ]
    assert introductions[0] == introductions[1]
