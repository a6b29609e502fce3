"""The tables of names, and the core without projects."""

import importlib
import pathlib
import re

import pytest

from official.xlnet.configs import registry
from official.xlnet.files.former_modules import FORMER, name_today
from official.xlnet.files.registry import full_name
from official.xlnet.projects import PROJECTS
from tests.helpers.documents import ROOT, pages_of_projects

pytestmark = pytest.mark.quick

TABLES = [table for table in vars(registry).values() if isinstance(table, registry.Registry)]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.key)
def test_every_module_registers_its_names_and_no_others(table):
    table.names()  # Enters those of tasks.
    values = {name: table[name] for name in list(table.modules)}
    places = {name: getattr(value, "__module__", None) for name, value in values.items()}
    if table is registry.HEAD_FORMATS:  # Values, which do not know their module.
        assert values.keys() == {*table} == table.modules.keys()
        return
    assert places == {name: full_name(x) for name, x in table.modules.items()}
    ours = {name for name in table if getattr(table[name], "__module__", "") in places.values()}
    assert ours == set(table.modules) or not table.modules


def is_in_no_deleted_project(module):
    """Whether a module is in the core, or in a project of the table."""
    package, _, name = module.partition(".")
    return package != "projects" or name.partition(".")[0] in PROJECTS


# A module is not found by its former name if a deleted project had the package that it was in.
FOUND = [
    (former, today)
    for former, today in FORMER.items()
    if is_in_no_deleted_project(today)
    and is_in_no_deleted_project(FORMER.get(former.rpartition(".")[0], ""))
]


@pytest.mark.parametrize("former, today", FOUND)
def test_modules_are_imported_by_their_former_names(former, today):
    assert name_today(f"official.xlnet.{former}.a") == f"official.xlnet.{today}.a"
    assert name_today("official.xlnet.modeling") == name_today(former) == ""
    if former == "garden":  # Its import chooses tf_keras.
        return
    module = importlib.import_module(f"official.xlnet.{today}")
    assert importlib.import_module(f"official.xlnet.{former}") is module
    assert module.__spec__.name == f"official.xlnet.{today}"
    for path in getattr(module, "__path__", ()):
        for name in sorted(file.stem for file in pathlib.Path(path).glob("[a-z]*.py")):
            part = importlib.import_module(f"official.xlnet.{today}.{name}")
            assert importlib.import_module(f"official.xlnet.{former}.{name}") is part


@pytest.mark.parametrize("project", PROJECTS)
def test_a_project_has_a_page_that_says_what_it_adds_and_its_limits(project):
    text = (ROOT / "official/xlnet/projects" / project / "README.md").read_text(encoding="utf-8")
    assert 20 <= len(text.splitlines()) <= 40
    assert "```" in text and "\n## What it adds\n" in text and "\n## Limits\n" in text
    links = re.findall(r"\]\((?:\.\./){4}docs/(\w+\.md)(?:#([\w-]+))?", text)
    of_project = {page for page, name in pages_of_projects().items() if name == project}
    assert any(page in of_project or anchor for page, anchor in links), (
        "expected a page in mkdocs.yml with `# project: …`, or a section of a page"
    )
    named = (registry.VERBS, registry.PUBLIC_NAMES, registry.TASKS, registry.NETWORKS)
    for table, _, names in PROJECTS[project]:
        if any(table is one for one in named):
            missing = [name for name in names if not re.search(rf"\b{name}\b", text)]
            assert missing == [], f"{project}: {table.key}"


@pytest.mark.parametrize("project", PROJECTS)
def test_the_page_of_the_architecture_lists_the_verbs_of_a_project(project):
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{project}` \|.*", page, re.MULTILINE)
    names = [name for table, _, x in PROJECTS[project] if table is registry.VERBS for name in x]
    listed = re.findall(r"`(?:xlnet )?([a-z_ ]+)`", row.rpartition(" | ")[2].partition(";")[0])
    assert listed == names or (not names and "xlnet" not in row)


@pytest.mark.parametrize("project", PROJECTS)
def test_a_project_has_a_quick_test(project):
    """Which `make test` runs; the others are slow."""
    files = (ROOT / "tests/projects" / project).glob("test_*.py")
    texts = [file.read_text(encoding="utf-8") for file in files]
    assert any("pytest.mark.quick" in text for text in texts), f"mark a cheap test of {project}"
