"""The reference lists the public names, pictures are new, README and home say the same."""

import doctest
import html
import importlib
import inspect
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from benchmarks.harness.tables import recipe_digests
from benchmarks.learning import stale
from benchmarks.reports import figures
from official import xlnet
from tests.helpers.documents import ROOT, blocks
from tests.helpers.package.of_projects import rows
from tests.helpers.package.registered import nothing_is_kept
from tools import api_page, former_pages

DOCS = ROOT / "docs"
IMAGE = re.compile(r"!\[[^\]]*\]\((?:docs/)?images/(\w+)\.png\)")
MODULES = [
    "modeling.depth.stacked",
    "modeling.layers.feed_forward",
    "modeling.layers.relative_attention",
    "modeling.layers.relative_position",
    "modeling.layers.relative_segment",
    "modeling.layers.two_stream_mask",
    "modeling.layers.xlnet_block",
    "modeling.networks.xlnet_encoder",
    "modeling.objectives.permutation_sampling",
    "modeling.ops.shapes",
    "tokenization.graph.ragged",
    "tasks.batching",
    "tasks.labels",
    "tasks.multiple_choice.task",
    "tasks.ranking.metrics",
    "training.evaluation",
    "training.optimization",
    *rows("EXAMPLES_IN_DOCSTRINGS"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_give_what_they_say(name):
    module = importlib.import_module(f"official.xlnet.{name}")
    # What somebody has imported who writes such lines.
    names = {"np": np, "tf": tf} | {each: getattr(xlnet, each) for each in xlnet.__all__}
    with nothing_is_kept():
        result = doctest.testmod(module, extraglobs={**names, **vars(module)})
    assert result.attempted > 0 and result.failed == 0


def test_the_reference_lists_every_public_name_with_its_first_sentence():
    page = api_page.names_page()
    assert api_page.PAGE.read_text(encoding="utf-8") == page, "run python -m tools.api_page"
    hooks = {name for name in xlnet.__all__ if name.startswith("register_")}
    assert all(f"`{name}`" in page for name in hooks)
    for name in set(xlnet.__all__) - {"__version__"} - hooks:
        (row,) = re.findall(rf"^- `{name}`: .*", page, re.MULTILINE)
        paragraph = inspect.getdoc(getattr(xlnet, name)).partition("\n\n")[0]
        assert " ".join(paragraph.split()) in html.unescape(row)


@pytest.mark.slow
def test_the_site_has_every_name_with_its_arguments_and_the_list_leads_there(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", f"--site-dir={tmp_path}"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    places = re.findall(r'href="([\w.]+)#([\w.]+)"><code>', (tmp_path / "library.html").read_text())
    entries = api_page.entries().values()
    assert [name for _, name in places] == [f"{m}.{n.name}" for found in entries for m, n in found]
    for file, name in places:
        text = (tmp_path / file).read_text().partition(f'id="{name}"')[2].partition("<h2 ")[0]
        if file == "api_official_xlnet.html":
            function = getattr(xlnet, name.rpartition(".")[2])
            arguments = inspect.signature(function).parameters.values()
            named = {x.name for x in arguments if x.kind is not x.VAR_KEYWORD}
            for argument in named - {"default_params", "restrictions"}:  # hyperparams.Config's.
                assert re.search(rf"\b{argument}\b", text), f"{name}({argument})"
    for name, sections in former_pages.FORMER.items():
        former = (tmp_path / f"{name}.html").read_text()
        for address in sections.values():
            page, _, section = address.replace(".md", ".html").partition("#")
            assert page in former and f'id="{section}"' in (tmp_path / page).read_text() + 'id=""'


def test_tables_name_their_columns():
    """All except the first one."""
    for path in [ROOT / "README.md", *DOCS.glob("*.md")]:
        heads = re.findall(r"^(\|.*)\n\|[-:| ]+\|$", path.read_text(encoding="utf-8"), re.M)
        empty = [head for head in heads if "" in map(str.strip, head.split("|")[2:-1])]
        assert empty == [], path


def test_no_picture_is_older_than_what_it_shows(tmp_path, monkeypatch):
    assert figures.older(DOCS) == [], "make figures"
    assert {path.stem for path in (DOCS / "images").iterdir()} == set(figures.PICTURES)
    pages = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    assert set(IMAGE.findall(pages)) == set(figures.PICTURES)
    monkeypatch.setattr(figures, "PICTURES", {"records": figures.PICTURES["records"]})
    page = shutil.copy(DOCS / "data_preparation.md", tmp_path / "data_preparation.md")
    figures.draw(["records"], tmp_path)
    assert figures.older(tmp_path) == []
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("| 2,253,000 |", "| 2,254,000 |"), encoding="utf-8")
    assert figures.older(tmp_path) == ["records"]


def test_no_table_is_older_than_its_recipes_and_its_command(tmp_path, monkeypatch):
    """A table that fails is measured again by the command above it, or taken out.

    Whether today's code gives its numbers takes longer: `benchmarks.learning.stale`.
    """
    monkeypatch.chdir(ROOT)
    tables = stale.tables_of(DOCS)
    assert any(entry.startswith("configs/") for _, end in tables.values() for entry in end)
    for name, (command, end) in tables.items():
        assert stale.changed(command, end) == [] and stale.numbers_in(end), name
    recipe = shutil.copy("configs/tiny.yaml", tmp_path / "tiny.yaml")
    before = recipe_digests(str(recipe))
    recipe.write_text(recipe.read_text() + "# A comment.\n")
    assert recipe_digests(str(recipe)) == before
    recipe.write_text(recipe.read_text().replace("num_layers: 2", "num_layers: 3"))
    assert recipe_digests(str(recipe)) != before


def test_the_home_page_sorts_the_pages_as_the_site_does():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    sections = re.findall(r"^  - ([\w -]+):\n((?:      .*\n)+)", navigation, re.MULTILINE)
    site = {name: re.findall(r": (\w+\.md)", pages) for name, pages in sections}
    guides = (DOCS / "index.md").read_text(encoding="utf-8").partition("## Guides by goal")[2]
    cards = re.findall(r"^-   \*\*([^*]+)\*\*\n\n((?:    .*\n)+)", guides, re.MULTILINE)
    assert {name: re.findall(r"\]\((\w+\.md)\)", pages) for name, pages in cards} == site


def test_readme_and_home_show_the_same_code_and_results():
    paths = (ROOT / "README.md", DOCS / "index.md")
    (readme, home) = (path.read_text(encoding="utf-8") for path in paths)
    codes = [{block.code for block in blocks(path) if block.is_run} for path in paths]
    assert codes[0] == codes[1]
    for pattern in (r"^`([^`]+)`: \[", r"# XLNet for TensorFlow\n(.*?)\n\n", IMAGE):
        flags = 0 if pattern is IMAGE else re.MULTILINE | re.DOTALL
        assert re.findall(pattern, readme, flags)[:9] == re.findall(pattern, home, flags)[:9]
