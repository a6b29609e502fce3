"""docs/library.md lists the public names; the site has their signatures and docstrings."""

import html
import inspect
import re
import subprocess
import sys

import pytest

from official import xlnet
from tools import api_page


def test_the_committed_page_is_up_to_date():
    assert api_page.PAGE.read_text(encoding="utf-8") == api_page.page(), (
        "docs/library.md is out of date: run python -m tools.api_page"
    )


def test_the_page_has_every_name_of_the_package_with_its_first_sentence():
    page = api_page.page()
    for name in set(xlnet.__all__) - {"__version__"}:
        (row,) = re.findall(rf"^\| `{name}` .*", page, re.MULTILINE)
        paragraph = inspect.getdoc(getattr(xlnet, name)).partition("\n\n")[0]
        assert " ".join(paragraph.split()) in html.unescape(row)


def test_the_site_has_every_name_with_its_arguments_and_the_list_leads_there(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", f"--site-dir={tmp_path}"]
    built = subprocess.run(command, cwd=api_page.ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    places = re.findall(r'href="([\w.]+)#([\w.]+)"><code>', (tmp_path / "library.html").read_text())
    names = [
        f"{module}.{node.name}" for found in api_page.entries().values() for module, node in found
    ]
    assert [name for _, name in places] == names
    pages = {file: (tmp_path / file).read_text() for file, _ in places}
    for file, name in places:
        of_name = pages[file].partition(f'id="{name}"')[2].partition("<h2 ")[0]
        assert of_name, name
        short = name.rpartition(".")[2]
        if file == "api_official_xlnet.html":
            arguments = inspect.signature(getattr(xlnet, short)).parameters.values()
            named = {x.name for x in arguments if x.kind is not x.VAR_KEYWORD}
            for argument in named - {"default_params", "restrictions"}:  # hyperparams.Config's.
                assert re.search(rf"\b{argument}\b", of_name), f"{name}({argument})"


def test_names_are_found_where_they_are_defined():
    module, node = api_page.find("official.xlnet.modeling.heads", "register_head")
    assert (module, node.name) == ("official.xlnet.modeling.heads.base", "register_head")
    with pytest.raises(ValueError, match="neither defines nor imports nothing"):
        api_page.find("official.xlnet.errors", "nothing")
