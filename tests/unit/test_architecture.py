"""The architecture: imports run one way, folders and functions stay small, no import cycles.

The rules are checked on the syntax trees of the files; nothing is imported. `docs/architecture.md`
explains the rooms.
"""

import ast
import graphlib
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
MOST_FILES = 15
MOST_LINES = 60  # Of a function, without its docstring.

TASKS = sorted(path.parent.name for path in ROOT.glob("official/xlnet/tasks/*/__init__.py"))

# Rooms from the ground up: a file may import from its own room and from lines above its room's.
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
    ["official.xlnet.analysis"],
    ["official.xlnet.serving.graph", "official.xlnet.serving.client", "official.xlnet.training"],
    ["official.xlnet.serving.services"],
    ["official.xlnet.serving"],
    ["data_prep"],
    [f"official.xlnet.tasks.{name}" for name in TASKS],
    ["official.xlnet.api"],
    ["official.xlnet.garden", "official.xlnet.extensions"],
    ["official.xlnet.commands"],
    ["official.xlnet.cli"],
    ["tools", "benchmarks"],
]

# Of the same kind, inside data_prep.
DATA_PREP_ORDER = [
    ["data_prep.progress", "data_prep.settings"],
    ["data_prep.corpus"],
    ["data_prep.records", "data_prep.tasks"],
    ["data_prep.pipelines"],
]

# Files of modeling that read the whole experiment: its models, each a public constructor.
READ_THE_EXPERIMENT = {
    "official.xlnet.modeling.models.xlnet_pretrainer",
    "official.xlnet.modeling.models.xlnet_task_model",
    "official.xlnet.modeling.networks.encoder",
}

# What data_prep may import of official.xlnet.
DATA_PREP_USES = {"errors", "files", "configs", "tokenization", "data", "runtime"}


def modules(root: pathlib.Path) -> dict[str, pathlib.Path]:
    """{dotted name: file} of the project's modules, packages under their own name."""
    files = [
        path
        for folder in ("official/xlnet", "data_prep", "benchmarks", "tools")
        for path in sorted((root / folder).rglob("*.py"))
    ]
    return {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in files
    }


def imports(path: pathlib.Path, known: set[str]) -> set[str]:
    """The project's modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            module = name if name in known else name.rpartition(".")[0]
            if module in known:
                found.add(module)
    return found


def graph(root: pathlib.Path) -> dict[str, set[str]]:
    """{module: the modules that it imports}."""
    files = modules(root)
    return {name: imports(path, set(files)) - {name} for name, path in files.items()}


def floor(module: str, order: list[list[str]]) -> tuple[int, str] | None:
    """The floor and the room of a module: those of the longest room that its name begins with."""
    rooms = [
        (room, number)
        for number, line in enumerate(order)
        for room in line
        if module == room or module.startswith(room + ".")
    ]
    if not rooms:
        return None
    room, number = max(rooms, key=lambda pair: len(pair[0]))
    return number, room


def uphill(edges: dict[str, set[str]], order: list[list[str]]) -> list[str]:
    """Imports from a room on the same floor or above."""
    found = []
    for module, used in edges.items():
        here = floor(module, order)
        for other in sorted(used):
            there = floor(other, order)
            if here and there and here[1] != there[1] and there[0] >= here[0]:
                found.append(f"{module} imports {other}")
    return found


def circle(edges: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle; empty where there is none."""
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def crowded(root: pathlib.Path) -> list[str]:
    """Folders with more than `MOST_FILES` files of Python."""
    folders = [root / "official/xlnet", root / "data_prep", root / "benchmarks", root / "tests"]
    counts = {
        path: len(list(path.glob("*.py")))
        for folder in folders
        for path in [folder, *folder.rglob("*")]
        if path.is_dir()
    }
    return [f"{path.relative_to(root)}: {n}" for path, n in counts.items() if n > MOST_FILES]


def too_long(root: pathlib.Path) -> list[str]:
    """Functions with more than `MOST_LINES` lines, not counting their docstrings."""
    found = []
    for module, path in modules(root).items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = num_lines(node)
                if ast.get_docstring(node, clean=False) is not None:
                    lines -= num_lines(node.body[0])
                if lines > MOST_LINES:
                    found.append(f"{module}.{node.name}: {lines}")
    return found


def num_lines(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def test_imports_run_one_way():
    edges = graph(ROOT)
    assert len(edges) > 150
    assert uphill(edges, ORDER) == []
    assert uphill(edges, DATA_PREP_ORDER) == []


def test_every_module_has_a_room():
    without = [module for module in modules(ROOT) if floor(module, ORDER) is None]
    assert without == ["official.xlnet", "official.xlnet.modeling"]  # They hold names only.


def test_data_prep_uses_the_lower_rooms_only():
    for module, used in graph(ROOT).items():
        if module.startswith("data_prep"):
            rooms = {name.split(".")[2] for name in used if name.startswith("official.xlnet.")}
            assert rooms <= DATA_PREP_USES, f"{module} imports {rooms - DATA_PREP_USES}"


@pytest.mark.parametrize("guests", ["extensions", *(f"tasks.{name}" for name in TASKS)])
def test_the_core_imports_no_guest(guests):
    """Neither an extension nor the folder of a task, which their names are found in."""
    room = f"official.xlnet.{guests}"
    for module, used in graph(ROOT).items():
        if not module.startswith((room, "official.xlnet.extensions", "benchmarks", "tools")):
            assert not [name for name in used if name.startswith(room)], module


def test_the_experiment_is_read_at_the_edge():
    readers = {
        module
        for module, used in graph(ROOT).items()
        if module.startswith("official.xlnet.modeling.")
        and "official.xlnet.configs.experiment" in used
    }
    assert readers == READ_THE_EXPERIMENT


def test_no_circle_of_files():
    edges = graph(ROOT)
    del edges["official.xlnet"]  # Its names are imported when they are first used.
    assert circle(edges) == []


def test_no_folder_is_crowded():
    assert crowded(ROOT) == []


def test_the_root_of_the_package_holds_no_code():
    files = {path.name for path in (ROOT / "official/xlnet").glob("*.py")}
    # errors.py is below all rooms: every one of them raises what it defines.
    assert files == {"__init__.py", "cli.py", "errors.py"}


def test_the_root_of_the_project_holds_known_folders():
    """Nobody has committed what a trial wrote to a relative path; without git, nothing is known."""
    listed = subprocess.run("git ls-files", shell=True, cwd=ROOT, capture_output=True).stdout
    folders = {path.partition("/")[0] for path in listed.decode().splitlines() if "/" in path}
    known = {"benchmarks", "configs", "data_prep", "docs", "official", "tests", "tools"}
    assert {name for name in folders if name[0] != "."} <= known


def test_no_function_is_too_long():
    assert too_long(ROOT) == []


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ("modeling/layers/b.py", "from official.xlnet.training import a"),
        ("modeling/layers/b.py", "def f():\n    import official.xlnet.training.a"),
        ("tokenization/b.py", "from official.xlnet.runtime.a import thing"),
    ],
)
def test_an_import_that_runs_uphill_is_found(tmp_path, changed, line):
    plant(tmp_path, {"training/a.py": "", "runtime/a.py": "", changed: line})
    (found,) = uphill(graph(tmp_path), ORDER)
    assert found.startswith(f"official.xlnet.{changed[:-3].replace('/', '.')} imports")


def test_a_circle_is_found(tmp_path):
    files = {
        "data/a.py": "from official.xlnet.data import b",
        "data/b.py": "from official.xlnet.data.c import thing",
        "data/c.py": "def f():\n    from official.xlnet.data.a import thing",
    }
    plant(tmp_path, files)
    assert set(circle(graph(tmp_path))) == {f"official.xlnet.data.{name}" for name in "abc"}
    plant(tmp_path, {"data/c.py": ""})
    assert circle(graph(tmp_path)) == []


def test_a_crowded_folder_is_found(tmp_path):
    plant(tmp_path, {f"data/a{number}.py": "" for number in range(MOST_FILES)})
    assert crowded(tmp_path) == []
    plant(tmp_path, {"data/one_more.py": ""})
    assert crowded(tmp_path) == ["official/xlnet/data: 16"]


def test_a_function_that_is_too_long_is_found(tmp_path):
    docstring = '    """A function.\n' + "\n    More.\n" * MOST_LINES + '    """\n'
    body = "    x = 1\n" * (MOST_LINES - 1)
    plant(tmp_path, {"data/a.py": f"def f():\n{docstring}{body}"})
    assert too_long(tmp_path) == []
    method = "class A:\n    async def g(self):\n" + "        x = 1\n" * MOST_LINES
    plant(tmp_path, {"data/a.py": f"def f():\n{docstring}{body}    y = 2\n", "data/b.py": method})
    assert too_long(tmp_path) == ["official.xlnet.data.a.f: 61", "official.xlnet.data.b.g: 61"]


def plant(root: pathlib.Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / "official/xlnet" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
