"""The architecture: imports run one way, folders and functions stay small, no import cycles.

The rules are checked on the syntax trees of the files; nothing is imported. `docs/architecture.md`
explains the packages, and shows them in the order that stands here.
"""

import ast
import graphlib
import pathlib
import re

import pytest

from tests.helpers.documents import blocks

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs/architecture.md"
MOST_FILES = 15
MOST_LINES = 60  # Of a function, without its docstring.

PROJECTS = sorted(p.parent.name for p in ROOT.glob("official/xlnet/projects/*/__init__.py"))
TASKS = sorted(path.parent.name for path in ROOT.glob("official/xlnet/tasks/*/__init__.py"))

# Packages from the ground up: a file imports from its own and from lines above its own.
ORDER = [
    ["official.xlnet.errors"],
    ["official.xlnet.files"],
    ["official.xlnet.configs"],
    ["official.xlnet.runtime", "official.xlnet.tokenization"],
    ["official.xlnet.data"],
    ["official.xlnet.modeling.ops"],
    ["official.xlnet.modeling.kernels"],
    ["official.xlnet.modeling.layers", "official.xlnet.modeling.depth"],
    ["official.xlnet.modeling.networks", "official.xlnet.modeling.objectives"],
    ["official.xlnet.modeling.heads"],
    ["official.xlnet.modeling.models"],
    ["official.xlnet.tasks", "official.xlnet.checkpoints"],
    ["official.xlnet.inference.network"],
    ["official.xlnet.inference"],
    ["official.xlnet.serving.client", "official.xlnet.training"],
    ["official.xlnet.serving.services"],
    ["official.xlnet.serving"],
    ["data_prep"],
    [f"official.xlnet.tasks.{name}" for name in TASKS],
    ["official.xlnet.jobs"],
    ["official.xlnet.api"],
    ["official.xlnet.testing"],
    ["official.xlnet.projects"],
    [f"official.xlnet.projects.{name}" for name in PROJECTS],
    ["official.xlnet.commands"],
    ["official.xlnet.cli"],
    ["tools", "benchmarks"],
]

# Of the same kind, inside data_prep.
DATA_PREP_ORDER = [
    ["data_prep.settings"],
    ["data_prep.corpus"],
    ["data_prep.records", "data_prep.tasks"],
    ["data_prep.pipelines"],
]

# Files of modeling that read the whole experiment: its models, each a public constructor.
READ_THE_EXPERIMENT = {
    "official.xlnet.modeling.models.language_model",
    "official.xlnet.modeling.models.task_parts",
    "official.xlnet.modeling.models.xlnet_pretrainer",
    "official.xlnet.modeling.models.xlnet_task_model",
    "official.xlnet.modeling.networks.encoder",
}

# What data_prep may import of official.xlnet.
DATA_PREP_USES = {"errors", "files", "configs", "tokenization", "data", "runtime"}


def modules(root):
    """{dotted name: file} of the project's modules, packages under their own name."""
    folders = ("official/xlnet", "data_prep", "benchmarks", "tools")
    files = [path for folder in folders for path in sorted((root / folder).rglob("*.py"))]
    return {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in files
    }


def graph(root):
    """{module: the project's modules that it imports, anywhere in it}."""
    files, edges = modules(root), {}
    for module, path in files.items():
        names = []
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: relative import"
                names += [f"{node.module}.{alias.name}" for alias in node.names]
        found = {name if name in files else name.rpartition(".")[0] for name in names}
        edges[module] = (found & files.keys()) - {module}
    return edges


def level(module, order):
    """(level, package) of a module: of the longest package that its name begins with."""
    packages = [
        (len(package), number, package)
        for number, line in enumerate(order)
        for package in line
        if module == package or module.startswith(package + ".")
    ]
    return max(packages)[1:] if packages else None


def uphill(edges, order):
    """Imports from a package on the same level or above."""
    found = []
    for module, used in edges.items():
        here = level(module, order)
        for other in sorted(used):
            there = level(other, order)
            if here and there and here[1] != there[1] and there[0] >= here[0]:
                found.append(f"{module} imports {other}")
    return found


def circle(edges):
    """Modules that import each other in a circle; empty where there is none."""
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def crowded(root):
    """Folders with more than `MOST_FILES` files of Python."""
    found = []
    for folder in ("official/xlnet", "data_prep", "benchmarks", "tests"):
        for path in [root / folder, *(root / folder).rglob("*")]:
            number = len(list(path.glob("*.py"))) if path.is_dir() else 0
            if number > MOST_FILES:
                found.append(f"{path.relative_to(root)}: {number}")
    return found


def too_long(root):
    """Functions whose bodies have more than `MOST_LINES` lines, not counting their docstrings."""
    found = []
    for module, path in modules(root).items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0]
                lines = node.end_lineno - first.lineno + 1
                if ast.get_docstring(node, clean=False) is not None:
                    lines -= first.end_lineno - first.lineno + 1
                if lines > MOST_LINES:
                    found.append(f"{module}.{node.name}: {lines}")
    return found


@pytest.fixture(scope="module")
def edges():
    return graph(ROOT)


def test_imports_run_one_way_and_not_in_a_circle(edges):
    assert len(edges) > 150
    assert uphill(edges, ORDER) == []
    assert uphill(edges, DATA_PREP_ORDER) == []
    without = [module for module in edges if level(module, ORDER) is None]
    assert without == ["official.xlnet", "official.xlnet.modeling"]  # They hold names only.
    # Names of the package are imported when they are first used.
    assert circle({name: used for name, used in edges.items() if name != "official.xlnet"}) == []


def test_preparing_data_needs_no_model(edges):
    for module, used in edges.items():
        if module.startswith("data_prep"):
            packages = {name.split(".")[2] for name in used if name.startswith("official.xlnet.")}
            assert packages <= DATA_PREP_USES, f"{module} imports {packages - DATA_PREP_USES}"


@pytest.mark.parametrize("project", PROJECTS)
def test_nothing_imports_a_project(project, edges):
    """Neither the core, which finds its names in a table, nor another project."""
    package = f"official.xlnet.projects.{project}"
    for module, used in edges.items():
        if not module.startswith((package, "benchmarks", "tools")):
            assert not [name for name in used if name.startswith(package)], module


def names_of_imports(path):
    """What a file imports, dotted."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def test_tests_of_the_core_import_no_project():
    """Nor a project's tests those of another: what a project brings is found by its `rows.py`."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        folders = path.relative_to(ROOT / "tests").parts
        own = folders[1] if folders[0] == "projects" else None
        for name in names_of_imports(path):
            package, separator, rest = name.partition(".projects.")
            if separator and package in ("official.xlnet", "tests"):
                assert rest.partition(".")[0] in (own, "PROJECTS"), f"{path} imports {name}"


@pytest.mark.parametrize("task", TASKS)
def test_the_core_imports_no_task(task, edges):
    """Nor does a task import another; projects may, as packages of others may."""
    package = f"official.xlnet.tasks.{task}"
    registry = f'configs.registry, such as FILE_READERS["{task}"]'
    for module, used in edges.items():
        if not module.startswith((package, "official.xlnet.projects.", "benchmarks", "tools")):
            found = [name for name in used if name.startswith(package)]
            assert not found, f"{module} imports {found}: find the part by its name in {registry}"


def test_both_pages_say_how_a_task_uses_another():
    """By its name in a registry: the example of one page is the rule of the other."""
    extending = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
    assert 'register_reader("polarity")(FILE_READERS["classification"])' in extending
    assert 'register_head("polarity")(HEADS["classification"])' in extending
    assert '`FILE_READERS["classification"]`' in PAGE.read_text(encoding="utf-8")
    imported = re.findall(r"official\.xlnet\.tasks\.(\w+)", extending)
    assert not {*imported} & {*TASKS}, "docs/extending.md imports the folder of a task"


def test_the_experiment_is_read_at_the_edge(edges):
    experiment, modeling = "official.xlnet.configs.experiment", "official.xlnet.modeling."
    readers = {m for m, used in edges.items() if m.startswith(modeling) and experiment in used}
    assert readers == READ_THE_EXPERIMENT


def test_one_file_chooses_the_keras():
    """Layers of tf_keras and of Keras 3 do not mix, so nothing else may import either."""
    found = [
        module
        for module, path in modules(ROOT).items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Import) and {x.name for x in node.names} & {"keras", "tf_keras"})
        or (isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in ("keras", "tf_keras"))
        or (isinstance(node, ast.Attribute) and ast.unparse(node) == "tf.keras")
    ]
    ops = "official.xlnet.modeling.ops"
    garden = {"official.xlnet.projects.garden"}  # It chooses tf_keras, as the Model Garden does.
    assert set(found) - garden == {f"{ops}.keras", f"{ops}.keras_3", "tools.mutants"}


def test_folders_and_functions_are_small():
    assert crowded(ROOT) == []
    assert too_long(ROOT) == []
    # errors.py is below all packages: every one of them raises what it defines.
    files = {path.name for path in (ROOT / "official/xlnet").glob("*.py")}
    assert files == {"__init__.py", "cli.py", "errors.py"}


def test_what_breaks_a_rule_is_found(tmp_path):
    lines = "        x = 1\n" * (MOST_LINES + 1)
    docstring = '    """A function.\n' + "\n    More.\n" * MOST_LINES + '    """\n'
    files = {
        "modeling/layers/b.py": "from official.xlnet.training import a",
        "tokenization/b.py": "def f():\n    import official.xlnet.runtime.a",
        "training/a.py": f"def f():\n{docstring}    return 1",
        "runtime/a.py": f"class A:\n    async def g(self):\n{lines}",
        "data/a.py": "from official.xlnet.data import b",
        "data/b.py": "def f():\n    from official.xlnet.data.a import thing",
    } | {f"files/a{number}.py": "" for number in range(MOST_FILES + 1)}
    for name, text in files.items():
        path = tmp_path / "official/xlnet" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    edges = graph(tmp_path)
    importing = [line.partition(" imports ")[0] for line in uphill(edges, ORDER)]
    assert importing == ["official.xlnet.modeling.layers.b", "official.xlnet.tokenization.b"]
    assert set(circle(edges)) == {"official.xlnet.data.a", "official.xlnet.data.b"}
    assert crowded(tmp_path) == [f"official/xlnet/files: {MOST_FILES + 1}"]
    assert too_long(tmp_path) == ["official.xlnet.runtime.a.g: 61"]


def test_the_page_shows_the_packages_in_their_order():
    text = PAGE.read_text(encoding="utf-8")
    picture, inside = (block.code.splitlines() for block in blocks(PAGE)[:2])
    shown = [line.split("│")[1].strip().split(", ") for line in picture if "│" in line]
    names = [[name.removeprefix("official.xlnet.") for name in line] for line in ORDER]
    of_folders = {f"tasks.{TASKS[0]}": "tasks.<name>", f"projects.{PROJECTS[0]}": "projects.<name>"}
    expected = [[of_folders[line[0]]] if line[0] in of_folders else line for line in names]
    assert shown[::-1] == expected
    order = [[name.removeprefix("data_prep.") for name in line] for line in DATA_PREP_ORDER]
    assert [line.split(", ") for line in inside][::-1] == order
    (sentence,) = re.findall(r"`data_prep` uses (.*?) only", text, re.S)
    assert set(re.findall(r"`(\w+)`", sentence)) == DATA_PREP_USES
    named = re.findall(r"`([\w/]+\.py)`", text) + re.findall(r"`([\w/]+)/<\w+>\.py`", text)
    assert len(set(named)) > 15 and f"at most {MOST_FILES} files" in text
    places = {name: (ROOT / name, ROOT / "official/xlnet" / name) for name in named}
    assert [name for name, paths in places.items() if not any(p.exists() for p in paths)] == []
