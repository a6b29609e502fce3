"""Which tests executed which functions: read from a coverage file, kept in a small file.

The coverage file is of a run with `--cov-context=test`. `tests/executed.json` keeps the tests that
executed a function, without its lines, so that it stays right while lines move:

  {"tests": {file: {test: CPU-seconds}},
   "executed": {source file: {"0-3,7 +57": "function Class.method"}}}

The tests are numbered in the order in which they are listed. A test function with several rows is
listed by row if its rows are expensive. Of a function that many tests executed, the nearest and
cheapest tests are kept, and the number of the others, `+57`.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import itertools
import json
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping

ROOT = pathlib.Path(__file__).parents[1]
FILE = ROOT / "tests/executed.json"
UNKNOWN_SECONDS = 5.0  # Of a test that no earlier run has measured.
FAR = 2  # Distance of tests that are not those of a module.
_FAR_ROWS = 3  # Rows of a far test function that come before other test functions.
_MOST_TESTS = 40  # That are kept of a function.
_SECONDS_BY_ROW = 0.2  # From this mean cost on, the rows of a test function are listed one by one.
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class CoverageFile:
    """A coverage file of a run with `--cov-context=test`.

    Attributes:
      sources: Source files that the run measured.
    """

    def __init__(self, path: str):
        import coverage

        self._data = coverage.CoverageData(path)
        self._data.read()
        start = re.compile(r".*/(?=official/xlnet/|data_prep/)")
        self._paths = {start.sub("", path): path for path in self._data.measured_files()}
        self.sources = set(self._paths)

    def tests_of_lines(self, source: str) -> dict[int, set[str]]:
        """{line of a source file: tests that executed it}."""
        if source not in self._paths:
            return {}
        contexts = self._data.contexts_by_lineno(self._paths[source])
        return {
            line: {name.split("|")[0] for name in names if name} for line, names in contexts.items()
        }


def statements(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Statements of a module and of its classes, each with the qualified name of its class."""
    waiting: list[tuple[str, list[ast.stmt]]] = [("", tree.body)]
    while waiting:
        scope, body = waiting.pop()
        for statement in body:
            yield scope, statement
            if isinstance(statement, ast.ClassDef):
                waiting.append((qualified(scope, statement.name), statement.body))


def qualified(scope: str, name: str) -> str:
    """The name of a function or class in the scope of a class, or of the module."""
    return f"{scope}.{name}" if scope else name


def functions_of(source: str) -> dict[str, set[int]]:
    """{function or method: lines of its body}; a function in a function is part of it."""
    lines: dict[str, set[int]] = collections.defaultdict(set)
    for scope, statement in statements(ast.parse(source)):
        if isinstance(statement, _FUNCTIONS):
            first, last = statement.body[0].lineno, statement.end_lineno or 0
            lines[qualified(scope, statement.name)] |= {*range(first, last + 1)}
    return lines


def distance(source: str, test: str) -> int:
    """How far a test is from a source file: `FAR` unless it is one of the tests of its module.

    Returns:
      0 for a file of tests that is named after the source file, 1 for one in the folder of the same
      name, else `FAR`.
    """
    parts = pathlib.PurePath(re.sub(r"^official/xlnet/(projects/)?", "", source)).with_suffix("")
    file = pathlib.PurePath(test.split("::")[0])
    words = {*re.findall("[a-z0-9]+", "_".join(parts.parts))}
    if words.issuperset(file.stem.split("_")[1:]):
        return 0
    folders = file.parent.parts[2:]
    return 1 if folders and folders == parts.parts[: len(folders)] else FAR


def by_nearness(source: str, tests: Iterable[str], costs: Mapping[str, float]) -> list[str]:
    """Tests of a source file: the nearest first and, of these, the cheapest.

    Of far test functions with many rows, the cheapest rows come first and the others last.
    """
    rows: collections.Counter[str] = collections.Counter()
    ordered: list[tuple[int, bool, int, str]] = []
    for test in sorted(tests, key=lambda test: (costs.get(test, UNKNOWN_SECONDS), test)):
        how_far = distance(source, test)
        rows[function_of(test)] += 1
        is_another_row = how_far == FAR and rows[function_of(test)] > _FAR_ROWS
        ordered.append((how_far, is_another_row, len(ordered), test))
    return [test for *_, test in sorted(ordered)]


@dataclasses.dataclass(frozen=True)
class Executed:
    """Tests that executed functions.

    Attributes:
      costs: {test: CPU-seconds}.
      tests: {source file: {function: tests, the nearest first}}.
      more: {source file: {function: number of other tests}}.
    """

    costs: dict[str, float]
    tests: dict[str, dict[str, list[str]]]
    more: dict[str, dict[str, int]]

    def of_file(self, source: str) -> list[str]:
        """All tests that executed a function of a file, the nearest first."""
        tests = {*itertools.chain.from_iterable(self.tests.get(source, {}).values())}
        return by_nearness(source, tests, self.costs)


def read(file: pathlib.Path = FILE) -> Executed:
    """What a file says; nothing where there is no such file."""
    if not file.exists():
        return Executed({}, {}, {})
    content = json.loads(file.read_text(encoding="utf-8"))
    costs: dict[str, float] = {}
    for path, tests in content["tests"].items():
        costs |= {f"{path}::{test}": seconds for test, seconds in tests.items()}
    numbered = list(costs)
    executed: dict[str, dict[str, list[str]]] = collections.defaultdict(dict)
    more: dict[str, dict[str, int]] = collections.defaultdict(dict)
    for source, groups in content["executed"].items():
        for key, names in groups.items():
            numbers, _, others = key.partition(" +")
            tests = [numbered[number] for number in _numbers(numbers)]
            for name in names.split():
                executed[source][name] = by_nearness(source, tests, costs)
                more[source][name] = int(others or 0)
    return Executed(costs, dict(executed), dict(more))


def write(
    coverage_files: Iterable[str], costs: dict[str, float], file: pathlib.Path = FILE
) -> None:
    """Writes the file from coverage files.

    Args:
      coverage_files: Files of runs with `--cov-context=test`.
      costs: {test: CPU-seconds} of the same runs.
      file: The file that is written.
    """
    runs = [CoverageFile(path) for path in coverage_files]
    sources = sorted({source for run in runs for source in run.sources if (ROOT / source).exists()})
    found = {source: _tests_of_functions(source, runs) for source in sources}
    tests = {test for test in costs if (ROOT / test.split("::")[0]).exists()}
    tests.update(*(names for functions in found.values() for names in functions.values()))
    listed = _listed(tests, costs)
    seconds: dict[str, float] = collections.defaultdict(float)
    for test in tests:
        seconds[listed[test]] += costs.get(test, UNKNOWN_SECONDS)
    numbers = {test: number for number, test in enumerate(sorted(seconds))}
    executed = {}
    for source, functions in found.items():
        if functions:
            kept = {name: {listed[x] for x in names} for name, names in functions.items()}
            executed[source] = _groups(source, kept, numbers, seconds)
    by_file: dict[str, dict[str, float]] = collections.defaultdict(dict)
    for test in numbers:
        path, _, name = test.partition("::")
        by_file[path][name] = round(seconds[test], 2)
    content = {"tests": by_file, "executed": executed}
    file.write_text(json.dumps(content, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


def _listed(tests: Iterable[str], costs: dict[str, float]) -> dict[str, str]:
    """{test: itself, or its function without the row}."""
    rows: dict[str, list[str]] = collections.defaultdict(list)
    for test in tests:
        rows[function_of(test)].append(test)
    listed = {}
    for function, names in rows.items():
        seconds = sum(costs.get(test, UNKNOWN_SECONDS) for test in names)
        by_row = seconds >= _SECONDS_BY_ROW * len(names) or "/conformance/" in function
        listed.update({test: test if by_row else function for test in names})
    return listed


def function_of(test: str) -> str:
    """The test function of a row."""
    return test.split("[")[0]


def _tests_of_functions(source: str, runs: list[CoverageFile]) -> dict[str, set[str]]:
    """{function of a source file: tests that executed its body}, without functions of no test."""
    bodies = functions_of((ROOT / source).read_text(encoding="utf-8"))
    found: dict[str, set[str]] = collections.defaultdict(set)
    for run in runs:
        tests = run.tests_of_lines(source)
        for name, lines in bodies.items():
            for line in lines & tests.keys():
                found[name] |= tests[line]
    return {name: names for name, names in found.items() if names}


def _groups(
    source: str, found: dict[str, set[str]], numbers: dict[str, int], costs: Mapping[str, float]
) -> dict[str, str]:
    """{numbers of tests: functions}."""
    groups: dict[str, list[str]] = collections.defaultdict(list)
    for name, tests in found.items():
        kept = by_nearness(source, tests, costs)[:_MOST_TESTS]
        key = _ranges(sorted(numbers[test] for test in kept))
        if len(tests) > len(kept):
            key += f" +{len(tests) - len(kept)}"
        groups[key].append(name)
    return {key: " ".join(names) for key, names in groups.items()}


def _ranges(numbers: list[int]) -> str:
    """Ascending numbers as text.

    Example:
      >>> _ranges([0, 1, 2, 7])
      '0-2,7'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _numbers(text: str) -> Iterator[int]:
    """The numbers of a text that `_ranges` has made."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
