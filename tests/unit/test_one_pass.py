"""Code reads in one pass: constructs and names that have to be decoded are in no module."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = ("official", "data_prep")
PROGRAMS = ("benchmarks", "tools")
# Each says less than the thing: `matches`, `row_number`, `label_type`, `saved_settings`, …
VAGUE_NAMES = {"each", "form", "found", "own", "which"}


def packed(tree: ast.AST) -> list[str]:
    """Constructs that pack several thoughts into a line, with their line numbers."""
    marks = []
    for node in ast.walk(tree):
        match node:
            case ast.Starred(value=ast.Tuple()):
                marks.append(f"line {node.lineno}: a tuple is unpacked where it is written")
            case ast.Call(func=ast.Name(id="locals")):
                marks.append(f"line {node.lineno}: local variables as a dictionary")
            case ast.Dict(keys=keys, values=values):
                for key, value in zip(keys, values, strict=True):
                    if key is None and isinstance(value, ast.IfExp | ast.Dict):
                        marks.append(f"line {node.lineno}: a dictionary within a dictionary")
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
                arguments = [x for call in calls for x in (*call.args, *call.keywords)]
                for argument in arguments:
                    value = argument.value if isinstance(argument, ast.keyword) else argument
                    if isinstance(value, ast.IfExp):
                        marks.append(
                            f"line {node.lineno}: a condition in a call in a comprehension"
                        )
    return marks


def vague(tree: ast.AST) -> list[str]:
    """Variables with a name that says nothing, with their line numbers."""
    marks = []
    for node in ast.walk(tree):
        is_assigned = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        if is_assigned and node.id in VAGUE_NAMES:
            marks.append(f"line {node.lineno}: {node.id}")
        if isinstance(node, ast.arg) and node.arg in VAGUE_NAMES:
            marks.append(f"line {node.lineno}: {node.arg}")
    return marks


@pytest.mark.parametrize(
    ("find", "folders"), [(packed, PACKAGES), (packed, PROGRAMS), (vague, PACKAGES)]
)
def test_modules_read_in_one_pass(find, folders):
    marks = {}
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            marks_of_module = find(ast.parse(path.read_text(encoding="utf-8")))
            if marks_of_module:
                marks[str(path.relative_to(ROOT))] = marks_of_module
    assert marks == {}


@pytest.mark.parametrize(
    ("find", "code"),
    [
        (packed, "call(*(1, 2), 3)"),
        (packed, "options = dict(**locals())"),
        (packed, "row = {**columns, **({'a': 1} if a else {})}"),
        (packed, "row = {**columns, **{'a': 1}}"),
        (packed, "sizes = [len(x if x else []) for x in texts]"),
        (packed, "texts = ''.join(join(text=x if x else '') for x in texts)"),
        (vague, "found = find(text)"),
        (vague, "for each in rows: print(each)"),
        (vague, "def name_of(form): ..."),
    ],
)
def test_marks_are_noticed(find, code):
    assert len(find(ast.parse(code))) == 1
