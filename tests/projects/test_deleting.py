"""Each project can be deleted: the rest works, and its help does not name the project.

The scratch copy has no folder and no tests of the project, and a table without its entry.
"""

import ast
import json
import os
import pathlib
import pydoc_data.topics
import shutil
import subprocess
import sys

import pytest

from official.xlnet.configs import registry
from official.xlnet.projects import PROJECTS
from tests.helpers.documents import ROOT, pages_of_deleted_projects

FOLDERS = ("official", "data_prep", "configs", "docs", "tests", "tools", "benchmarks")
FILES = ("pyproject.toml", "Makefile", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "mkdocs.yml")
TESTS = (
    "tests/unit/test_architecture.py",
    "tests/unit/commands",
    "tests/unit/configs",
    "tests/unit/training/test_finetuning_recipes.py",
    "tests/projects/test_projects.py",
)
# Imports all modules that are left, and prints the names of all tables.
IMPORTS = """
import importlib, json, pathlib
from official.xlnet.configs import registry
for folder in ("official/xlnet", "data_prep"):
    for path in sorted(pathlib.Path(folder).rglob("*.py")):
        name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        if ".garden" not in name:  # It chooses another Keras.
            importlib.import_module(name)
tables = [x for x in vars(registry).values() if isinstance(x, registry.Registry)]
print(json.dumps({table.key: table.names() for table in tables}))
"""


def without_entry(text, project):
    """The text of the table of projects without a project's entry."""
    (table,) = [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "PROJECTS"
    ]
    keys = [key.value for key in table.keys]
    index = keys.index(project)
    first, last = table.keys[index].lineno, table.values[index].end_lineno
    lines = text.splitlines(keepends=True)
    return "".join(lines[: first - 1] + lines[last:])


class Copy:
    """A copy of the repository without a project."""

    def __init__(self, folder, project):
        ignored = shutil.ignore_patterns("__pycache__", "build", "*.ipynb_checkpoints")
        for name in FOLDERS:
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
        for name in FILES:
            shutil.copy(ROOT / name, folder / name)
        shutil.rmtree(folder / "official/xlnet/projects" / project)
        shutil.rmtree(folder / "tests/projects" / project, ignore_errors=True)
        table = folder / "official/xlnet/projects/__init__.py"
        table.write_text(without_entry(table.read_text(encoding="utf-8"), project), "utf-8")
        self.folder = folder

    def python(self, *arguments, status=0):
        """Runs Python in the copy; returns its standard output."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        result = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == status, f"{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
        return result.stdout

    def xlnet(self, verb, *arguments, **flags):
        """Runs a verb; returns its standard output."""
        options = [f"--{name}={value}" for name, value in flags.items()]
        return self.python("-m", "official.xlnet.cli", *verb.split(), *options, *arguments)


@pytest.fixture(scope="module", params=PROJECTS)
def copy(request, tmp_path_factory):
    return Copy(tmp_path_factory.mktemp(f"without_{request.param}"), request.param), request.param


def names_of(project):
    """Names that a project alone registers."""
    return {name for _, _, names in PROJECTS[project] for name in names}


def verbs_of(project):
    """Verbs that a project brings."""
    verbs = getattr(registry, "VERBS", None)
    parts = PROJECTS[project]
    return {name for table, _, names in parts if table is verbs for name in names}


pytestmark = pytest.mark.slow


@pytest.mark.nightly
def test_all_other_modules_are_imported_and_no_table_has_its_names(copy):
    rest, project = copy
    tables = json.loads(rest.python("-c", IMPORTS).splitlines()[-1])
    for table, _, names in PROJECTS[project]:
        assert set(names).isdisjoint(tables.get(table.key, ())), table.key


def test_help_does_not_name_it(copy):
    rest, project = copy
    texts = {"": rest.xlnet("", "--help")}
    verbs = getattr(registry, "VERBS", None)
    others = [] if verbs is None else [name for name in verbs.names()]
    others = [name for name in others if name not in verbs_of(project)]
    for verb in others:
        texts[verb] = rest.xlnet(verb, "--help")
    for verb, text in texts.items():
        assert f"projects/{project}" not in text and f"projects.{project}" not in text, verb
        lines = [line.split() for line in text.splitlines()]
        for name in verbs_of(project):
            is_named = [words for words in lines if words[: len(name.split())] == name.split()]
            assert not is_named, f"{verb}: {name}"


def test_its_verbs_are_unknown(copy):
    rest, project = copy
    for verb in verbs_of(project):
        rest.python("-m", "official.xlnet.cli", *verb.split(), "--help", status=2)


@pytest.mark.nightly
def test_tests_of_the_rest_pass(copy):
    rest, _ = copy
    rest.python("-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-x", *TESTS)


@pytest.mark.nightly
def test_a_model_is_trained_and_used(copy):
    rest, _ = copy
    folder = rest.folder / "runs"
    folder.mkdir()
    text = "\n\n".join(pydoc_data.topics.topics.values())[:250_000]
    (folder / "text.txt").write_text(text, encoding="utf-8")
    rows = [f"{('bad', 'good')[i % 2]}\tIt is {('bad', 'good')[i % 2]} {i}." for i in range(24)]
    table = folder / "rows.tsv"
    table.write_text("label\ttext\n" + "\n".join(rows) + "\n", encoding="utf-8")
    vocab, data, model, task = (folder / name for name in ("vocab", "data", "model", "task"))
    recipe = "configs/tiny.yaml"
    rest.xlnet("vocab", input=folder / "text.txt", output=vocab, size=500)
    rest.xlnet("prepare", input=folder / "text.txt", vocab=vocab, config=recipe, output=data)
    rest.xlnet("pretrain", config=recipe, data=data, output=model, steps=2)
    settings = {"init_from": model, "output": task, "set": "task.epochs=1"}
    rest.xlnet("finetune", task="classification", train=table, dev=table, **settings)
    predictions = folder / "predictions.jsonl"
    rest.xlnet("predict", model=task, input=table, output=predictions)
    assert len(predictions.read_text(encoding="utf-8").splitlines()) == len(rows)
    rest.xlnet("export", model=task, output=folder / "served")
    assert pathlib.Path(folder, "served/1/saved_model.pb").exists()
    rest.xlnet("score", model=model, text="The cat sat.")


def test_a_page_of_a_project_is_in_its_readme():
    """By it, tests of documents know which pages go with a project that is deleted."""
    assert pages_of_deleted_projects() == set()


def test_an_entry_is_taken_out_of_the_table():
    text = "PROJECTS: dict = {\n    'a': (\n        1,\n    ),\n    'b': (2,),\n}\n"
    assert without_entry(text, "a") == "PROJECTS: dict = {\n    'b': (2,),\n}\n"
    assert without_entry(text, "b") == "PROJECTS: dict = {\n    'a': (\n        1,\n    ),\n}\n"
