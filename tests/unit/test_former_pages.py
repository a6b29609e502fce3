"""Every page that was ever published has an address today."""

import json
import re
import subprocess
import types

import markdown
import pytest

from tests.helpers.documents import ROOT, pages_of_deleted_projects
from tools.former_pages import FORMER, on_post_build

DOCS = ROOT / "docs"
ADDRESSES = {
    f"{name}#{section}": address
    for name, sections in FORMER.items()
    for section, address in sections.items()
}


def sections_of(page):
    """Anchors of the headings of a page, as MkDocs makes them."""
    text = (DOCS / page).read_text(encoding="utf-8")
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = "\n\n".join(re.findall(r"^#+ .*$", text, re.MULTILINE))
    return set(re.findall(r'<h\d id="([^"]+)"', markdown.markdown(headings, extensions=["toc"])))


@pytest.mark.parametrize("address", sorted({*ADDRESSES.values()}))
def test_a_former_page_leads_to_a_page_and_a_section_that_exist(address):
    page, _, section = address.partition("#")
    if page in pages_of_deleted_projects():
        return
    assert (DOCS / page).is_file()
    assert not section or section in sections_of(page)


def test_every_page_that_was_ever_published_has_an_address():
    """Those that Git has recorded in docs; a copy without history has only today's."""
    options = ("--diff-filter=D", "--no-renames", "--name-only", "--format=")
    command = ["git", "log", *options, "--", "docs"]
    recorded = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    pages = re.findall(r"^docs/(\w+)\.md$", recorded.stdout, re.MULTILINE)
    today = {path.stem for path in DOCS.glob("*.md")}
    deleted = {page.removesuffix(".md") for page in pages_of_deleted_projects()}
    assert {*pages} - today - deleted <= FORMER.keys(), "add a row to tools/former_pages.py"
    assert today.isdisjoint(FORMER)


def test_the_page_at_a_former_address_leads_on_with_the_section(tmp_path):
    (tmp_path / "index.html").touch()
    (tmp_path / "experiments.html").touch()  # All others have left with their projects.
    on_post_build(types.SimpleNamespace(site_dir=str(tmp_path)))
    assert {path.stem for path in tmp_path.glob("*.html")} == {"index", "experiments", *FORMER}
    page = (tmp_path / "learning.html").read_text(encoding="utf-8")
    addresses = json.loads(re.search(r"addresses = (.*);", page)[1])
    assert addresses == {
        section: address.replace(".md", ".html") for section, address in FORMER["learning"].items()
    }
    assert 'href="experiments.html"' in page and "url=experiments.html" in page
    assert 'href="index.html"' in (tmp_path / "onnx.html").read_text(encoding="utf-8")
