"""Selects tests for the changes since `main`, for an answer in about a minute.

A changed function is answered by tests that executed it when `tests/executed.json` was recorded:
those of the file and of the folder of the same name first, then the others, the cheapest first,
while the budget lasts; and by the conformance rows of what its file registers. Code that is
executed when a module is imported is answered by the tests of the module. Of other files, the tests
that mention their names are selected. Changed tests run themselves.

  make test-changed
  make executed   # records what the tests execute
"""

from __future__ import annotations

import argparse
import ast
import collections
import dataclasses
import itertools
import json
import pathlib
import re
import subprocess
from collections.abc import Iterable

from official.xlnet.configs import registry
from official.xlnet.files.registry import Registry, full_name
from tools import executed
from tools.executed import ROOT, Executed

# CPU time of the selected tests; the start of their processes takes the rest of a minute.
SECONDS = 40
CONFORMANCE = "tests/conformance"
_OUTPUT = "build/changed_tests.txt"
_BREAK_ALL = {"tests/conftest.py", "pyproject.toml", "requirements.lock"}
_TEST_FILE = re.compile(r"tests/(.*/)?test_\w+\.py")
_SOURCE = re.compile(r"(official/xlnet|data_prep)/.*\.py")


def main() -> None:
    """Writes the selected tests to a file, one a line, or records what tests executed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", nargs="+", help="Coverage files to record tests from.")
    parser.add_argument("--costs", default="build/costs.json", help="JSON, {test: CPU-seconds}.")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="CPU time of the tests.")
    parser.add_argument("--output", default=_OUTPUT, help="File of the selected tests.")
    options = parser.parse_args()
    if options.record:
        costs = json.loads(pathlib.Path(options.costs).read_text(encoding="utf-8"))
        executed.write(options.record, costs)
        return
    selection = select(changes(), executed.read(), options.seconds)
    output = pathlib.Path(options.output)
    output.parent.mkdir(exist_ok=True)
    output.write_text("".join(f"{test}\n" for test in selection.tests), encoding="utf-8")
    print(selection.summary())


def changes() -> dict[str, set[str]]:
    """{changed file: what has changed in it, see `changed_pieces`} since `main`."""
    base, *_ = [*_git("merge-base", "HEAD", "main").split(), "HEAD"]
    paths = _git("diff", "--name-only", "--no-renames", base).splitlines()
    paths += _git("ls-files", "--others", "--exclude-standard").splitlines()
    found: dict[str, set[str]] = {}
    for path in sorted(paths):
        found[path] = set()
        if path.endswith(".py"):
            file = ROOT / path
            after = file.read_text(encoding="utf-8") if file.exists() else ""
            try:
                found[path] = changed_pieces(_git("show", f"{base}:{path}"), after)
            except SyntaxError as error:
                raise SystemExit(f"{path}, line {error.lineno}: {error.msg}") from None
    return found


def _git(*arguments: str) -> str:
    """Output of a command of Git; empty if it fails."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def changed_pieces(before: str, after: str) -> set[str]:
    """Qualified names of the functions, variables and other parts that differ, see `_pieces`."""
    old, new = _pieces(before), _pieces(after)
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def _pieces(source: str) -> dict[str, str]:
    """{qualified name: its code} of functions and variables, and of the rest of each class.

    The rest of a module has the name "". Docstrings are part of the rest, as commands print them.
    """
    found: dict[str, str] = collections.defaultdict(str)
    for scope, statement in executed.statements(ast.parse(source)):
        name = scope
        if isinstance(statement, ast.ClassDef):
            name = executed.qualified(scope, statement.name)
            statement = ast.ClassDef(**{**vars(statement), "body": []})
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            name = executed.qualified(scope, statement.name)
            if (docstring := ast.get_docstring(statement)) is not None:
                found[scope] += docstring
                statement.body[0] = ast.Pass()
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if isinstance(targets[0], ast.Name):
                name = executed.qualified(scope, targets[0].id)
        found[name] += ast.dump(statement)
    return found


@dataclasses.dataclass(frozen=True)
class Selection:
    """Selected tests.

    Attributes:
      tests: The tests, the cheapest first: a file, a test function, a row, or
        `tests/conformance::WORD` for the rows of a name that is not recorded yet.
      seconds: CPU time that they took when they were recorded.
      left: Number of other recorded tests that executed what has changed.
    """

    tests: list[str]
    seconds: float
    left: int

    def summary(self) -> str:
        """A line about the selection."""
        selected = f"{len(self.tests)} tests of the changes, {self.seconds:.0f} CPU-seconds"
        return f"{selected}; {self.left} others that execute what has changed: `make test`"


def select(
    changed: dict[str, set[str]], record: Executed, most_seconds: float = SECONDS
) -> Selection:
    """Selects tests for changed files.

    Args:
      changed: {changed file: what has changed in it}, see `changes`.
      record: Which tests executed what.
      most_seconds: CPU time that the tests may take together. Changed tests, conformance rows, and
        one test for each changed thing, are selected whatever they take.

    Returns:
      The selection.
    """
    tests = TestFiles(record)
    if _BREAK_ALL & changed.keys():
        return Selection(["tests"], sum(record.costs.values()), 0)
    needed: dict[str, None] = {}
    choices, more = [], 0
    for path, names in changed.items():
        if _TEST_FILE.fullmatch(path):
            changed_tests, others_in_file = tests.changed_in(path, names)
            needed |= dict.fromkeys(changed_tests)
            choices.append(others_in_file)
        elif _SOURCE.fullmatch(path):
            needed |= dict.fromkeys(conformance_rows(path, names, record))
            choices += tests.of_source(path, names)
            counts = record.more.get(path, {})
            more = max([more, *(counts[name] for name in names if name in counts)])
        choices.append(tests.that_mention(path))
    chosen = _within_budget(needed, choices, tests, most_seconds)
    others = {*itertools.chain(*choices)} - {*chosen}
    ordered = sorted(chosen, key=lambda test: (tests.cost(test), test))
    return Selection(ordered, sum(map(tests.cost, chosen)), len(others) + more)


def _within_budget(
    needed: Iterable[str], choices: list[list[str]], tests: TestFiles, most_seconds: float
) -> list[str]:
    """The needed tests, and of each choice in turn the next one, while the budget lasts."""
    chosen = dict.fromkeys(needed)
    seconds = sum(map(tests.cost, chosen))
    for place, turn in enumerate(itertools.zip_longest(*choices)):
        for test in turn:
            if test is None or test in chosen:
                continue
            if place == 0 or seconds + tests.cost(test) <= most_seconds:
                chosen[test] = None
                seconds += tests.cost(test)
    return list(chosen)


class TestFiles:
    """The files of tests as they are now, with what is recorded of them."""

    def __init__(self, record: Executed):
        self._record = record
        paths = sorted((ROOT / "tests").rglob("test_*.py"))
        self._texts = {str(x.relative_to(ROOT)): x.read_text(encoding="utf-8") for x in paths}
        self._recorded: dict[str, list[str]] = collections.defaultdict(list)
        self._costs = dict(record.costs)
        for test, seconds in record.costs.items():
            path, function = test.split("::")[0], executed.function_of(test)
            self._recorded[path].append(test)
            for group in {path, function} - {test}:
                self._costs[group] = self._costs.get(group, 0.0) + seconds

    def cost(self, test: str) -> float:
        """CPU-seconds of a test, of the rows of a test function, or of a file."""
        return self._costs.get(test, executed.UNKNOWN_SECONDS)

    def changed_in(self, path: str, names: set[str]) -> tuple[list[str], list[str]]:
        """Changed test functions of a file, and its other tests if anything else has changed."""
        if path not in self._texts:
            return [], []
        functions = [name for name in names if self._has(path, name)]
        others = self._of_file(path) if {*names} - {*functions} - {""} else []
        return [f"{path}::{name}" for name in sorted(functions)], others

    def of_source(self, path: str, names: set[str]) -> list[list[str]]:
        """For each changed function of a source file the tests that executed it.

        For what has changed beside functions that are recorded, the tests of the module.
        """
        functions = self._record.tests.get(path, {})
        choices = [self._existing(functions[name]) for name in sorted(names & functions.keys())]
        near_files = [x for x in self._texts if executed.distance(path, x) < executed.FAR]
        choices.append([file for file in near_files if not self._recorded[file]])
        if names - functions.keys():
            tests = self._existing(self._record.of_file(path))
            near = [test for test in tests if executed.distance(path, test) < executed.FAR]
            if not tests:
                of_files = itertools.chain.from_iterable(map(self._of_file, near_files))
                near = executed.by_nearness(path, of_files, self._costs)
            choices.append(near or tests)
        return choices

    def that_mention(self, path: str) -> list[str]:
        """Tests of files that mention the name of a file, or its module, or its kind of files."""
        file = pathlib.PurePath(path)
        folder, module = ".".join(file.parent.parts), file.stem
        patterns = [rf"\b{re.escape(file.name)}\b"]
        if file.suffix == ".py":
            patterns += [rf"\b{re.escape(folder)}(\.| import .*\b){re.escape(module)}\b"]
        if file.suffix == ".yaml":
            patterns += [rf'["/ =]{re.escape(module)}["/ ]']
        is_source = bool(_SOURCE.fullmatch(path))
        found = []
        for name, text in self._texts.items():
            # Tests beside the folders read all files of a kind.
            reads_all = pathlib.PurePath(name).parent.name == "unit" and f"*{file.suffix}" in text
            is_named = not is_source and any(re.search(pattern, text) for pattern in patterns)
            if name != path and (is_named or (file.suffix and reads_all)):
                found += self._of_file(name)
        return executed.by_nearness(path, found, self._costs)

    def _of_file(self, path: str) -> list[str]:
        """Recorded tests of a file, the cheapest first; the file if nothing is recorded."""
        tests = self._existing(self._recorded[path])
        return sorted(tests, key=self.cost) or [path]

    def _existing(self, tests: Iterable[str]) -> list[str]:
        return [test for test in tests if self._has(*test.split("::", maxsplit=1))]

    def _has(self, path: str, test: str) -> bool:
        """Whether a file has a test function now."""
        name = re.split(r"::|\.", test.split("[")[0])[-1]
        return name.startswith("test") and f"def {name}(" in self._texts.get(path, "")


def conformance_rows(path: str, names: set[str], record: Executed) -> list[str]:
    """Rows of the conformance tests for what a source file registers, and for changed settings."""
    rows = collections.defaultdict(list)
    for test in record.costs:
        if test.startswith(f"{CONFORMANCE}/"):
            for word in words_of_row(test):
                rows[word].append(test)
    families = [(_registered(table, path), [*table.modules]) for table in _tables()]
    families.append(_settings(path, names))
    found: dict[str, None] = {}
    for words, family in families:
        has_rows = any(word in rows for word in family)
        for word in sorted(words):
            new = [f"{CONFORMANCE}::{word}"] if has_rows else []
            found |= dict.fromkeys(rows.get(word, new))
    return list(found)


def words_of_row(test: str) -> set[str]:
    """Names of parts that a row of a conformance test is about.

    Example:
      >>> words_of_row("test_keys.py::test_each_key_is_read[training.seed]")
      {'training.seed', 'seed'}
    """
    _, _, row = test.rstrip("]").partition("[")
    words = {row, *row.split("-")}
    return words | {word.rpartition(".")[2] for word in words}


def _tables() -> list[Registry]:
    registry.TASKS.names()  # Imports the catalog of the tasks, which enters their files.
    return [table for table in vars(registry).values() if isinstance(table, Registry)]


def _registered(table: Registry, path: str) -> set[str]:
    """Names that a file registers in a table; of a file in the folder of a task, its tasks."""
    file = pathlib.PurePath(path).with_suffix("")
    modules = {name: full_name(module).split(".") for name, module in table.modules.items()}
    exact = {name for name, parts in modules.items() if parts == [*file.parts]}
    folder = [*file.parent.parts]
    if exact or folder[:-1] != ["official", "xlnet", "tasks"]:
        words = exact
    else:
        words = {name for name, parts in modules.items() if parts[:-1] == folder}
    return {word.removeprefix("*") for word in words}


def _settings(path: str, names: set[str]) -> tuple[set[str], list[str]]:
    """Changed settings in a file of the configuration, and all settings in it."""
    file = ROOT / path
    if "configs" not in file.parts and not file.stem.endswith("settings"):
        return set(), []
    source = file.read_text(encoding="utf-8") if file.exists() else ""
    parts = _pieces(source).keys() - executed.functions_of(source).keys()
    variables = {name: name.rpartition(".")[2] for name in parts if "." in name}
    return {variables[name] for name in variables.keys() & names}, [*variables.values()]


if __name__ == "__main__":
    main()
