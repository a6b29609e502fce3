"""Draws small faults of the product and tells which of them tests notice.

A mutant is one changed operator, comparison, constant or condition, or one dropped statement. The
tests that run its line, by a coverage file with contexts, are tried from the cheapest on, until one
fails. TensorFlow is imported once; each mutant is a fork of that process.

  make mutants N=150
"""

from __future__ import annotations

import argparse
import ast
import copy
import itertools
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from tools.executed import UNKNOWN_SECONDS, CoverageFile

ROOTS = ("official/xlnet", "data_prep")
_SWAPS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_GONE = 99  # Status of a mutant whose line is not in the file any more.
_MOST_SECONDS = 25  # CPU time of the tests that are tried on one mutant, by their costs.
_LIMIT_SECONDS = 120  # CPU time that they may take: a mutant may run for ever,
_MOST_WALL_SECONDS = 900  # or wait for ever.


def _changed(node: Any) -> Any:
    """The node with a fault; None where there is nothing to change."""
    new = copy.deepcopy(node)
    if isinstance(new, ast.BinOp | ast.BoolOp) and type(new.op) in _SWAPS:
        new.op = _SWAPS[type(new.op)]()
    elif isinstance(new, ast.Compare) and type(new.ops[0]) in _SWAPS:
        new.ops[0] = _SWAPS[type(new.ops[0])]()
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool):
        new.value = not new.value
    elif isinstance(new, ast.Constant) and isinstance(new.value, int | float):
        new.value += 1
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not):
        new = new.operand
    elif isinstance(new, ast.IfExp):
        new.body, new.orelse = new.orelse, new.body
    elif isinstance(new, ast.Expr | ast.AugAssign | ast.Raise):
        new = ast.Pass()
    else:
        return None
    return new


def _nodes(tree: ast.Module) -> Iterator[Any]:
    """Nodes of function bodies, in order; those of signatures and docstrings are left out."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            texts = [n for n in ast.walk(function) if isinstance(n, ast.JoinedStr)]
            inside = {id(n) for text in texts for n in ast.walk(text)}  # Without true columns.
            for statement in function.body:
                if not isinstance(getattr(statement, "value", None), ast.Constant):
                    yield from (n for n in ast.walk(statement) if id(n) not in inside)


def draw(number: int, seed: int) -> list[dict]:
    """Mutants, each `path`, `line`, `old` and `new`; files are drawn by their candidates."""
    found = []
    for path in sorted(str(p) for root in ROOTS for p in pathlib.Path(root).rglob("*.py")):
        source = pathlib.Path(path).read_text(encoding="utf-8")
        for node in {id(n): n for n in _nodes(ast.parse(source))}.values():
            if (new := _changed(node)) is None or node.end_lineno != node.lineno:
                continue
            line = source.splitlines()[node.lineno - 1].encode()
            start, end = node.col_offset, node.end_col_offset
            text = ast.unparse(new)
            if not isinstance(new, ast.stmt):
                text = f"({text})"
            changed = (line[:start] + text.encode() + line[end:]).decode()
            found.append(dict(path=path, line=node.lineno, old=line.decode(), new=changed))
    return random.Random(seed).sample(found, number)


def _tests_of(mutant: dict, run: CoverageFile, costs: dict[str, float]) -> list[str]:
    """Tests that run the line or, if none is known, the file, from the cheapest on."""
    lines = run.tests_of_lines(mutant["path"])
    chosen = lines.get(mutant["line"])
    if not chosen:  # AutoGraph runs a copy of a function.
        chosen = set().union(*lines.values())
    tests = sorted(chosen, key=lambda test: (costs.get(test, UNKNOWN_SECONDS), test))
    total = itertools.accumulate(costs.get(test, UNKNOWN_SECONDS) for test in tests)
    return [test for test, seconds in zip(tests, total, strict=True) if seconds <= _MOST_SECONDS]


def _status(folder: str, mutant: dict, tests: list[str]) -> int:
    """Exit status of pytest in a fork, with the mutant in place."""
    path = pathlib.Path(folder, mutant["path"])
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    places = [n for n, line in enumerate(lines) if line == mutant["old"]]
    if not places:
        return _GONE
    lines[min(places, key=lambda n: abs(n + 1 - mutant["line"]))] = mutant["new"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    child = os.fork()
    if not child:
        import pytest

        os.chdir(folder)
        sys.path.insert(0, folder)
        resource.setrlimit(resource.RLIMIT_CPU, (_LIMIT_SECONDS, _LIMIT_SECONDS))
        signal.alarm(_MOST_WALL_SECONDS)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        flags = ["-x", "-p", "no:cacheprovider", "-n0"]
        os._exit(int(pytest.main([*flags, *tests])))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    path.write_text(source, encoding="utf-8")
    return status


def _lines(path: str | None) -> list[dict]:
    if not path or not os.path.exists(path):
        return []
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]


def main() -> None:
    """Tries the mutants and writes a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="0/1", help="Every Nth mutant, as K/N.")
    parser.add_argument("--paths", default="", help="Only files whose paths begin so.")
    parser.add_argument(
        "--coverage", help="A coverage file with contexts; without it, --tests are run."
    )
    parser.add_argument("--costs", help="JSON, {test: CPU-seconds}.")
    parser.add_argument("--tests", nargs="*", default=[], help="Files of tests to run instead.")
    parser.add_argument("--again", help="An output: the same mutants, instead of a new draw.")
    parser.add_argument("--only", help="With --again, `killed` or `survived` ones only.")
    parser.add_argument("--output", required=True)
    given = parser.parse_args()
    costs = json.loads(pathlib.Path(given.costs).read_text()) if given.costs else {}
    mutants = [m | {"number": n} for n, m in enumerate(draw(given.number, given.seed))]
    if given.again:
        mutants = _lines(given.again)
        if given.only:
            mutants = [m for m in mutants if m["killed"] == (given.only == "killed")]
    done = {mutant["number"] for mutant in _lines(given.output)}  # Of a run that was stopped.
    sys.dont_write_bytecode = True
    import tensorflow_text  # noqa: F401
    import tf_keras  # noqa: F401

    part, parts = map(int, given.part.split("/"))
    os.makedirs(os.path.dirname(given.output) or ".", exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, open(given.output, "a") as output:
        for name in ("official", "data_prep", "tests", "tools", "benchmarks", "configs", "docs"):
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(name, f"{folder}/{name}", ignore=ignore)
        for path in (p for p in os.listdir(".") if os.path.isfile(p)):
            shutil.copy(path, folder)
        for mutant in mutants[part::parts]:
            if mutant["number"] in done or not mutant["path"].startswith(given.paths):
                continue
            tests = given.tests or _tests_of(mutant, CoverageFile(given.coverage), costs)
            status = _status(folder, mutant, tests) if tests else 5
            # 1: a test failed; 2, 4: a file of tests cannot be imported; below 0: out of time.
            mutant |= {"tests": len(tests), "status": status, "killed": status not in (0, 5, _GONE)}
            print(json.dumps(mutant), file=output, flush=True)
    tried = _lines(given.output)
    print(f"{sum(mutant['killed'] for mutant in tried)} of {len(tried)} mutants are noticed")


if __name__ == "__main__":
    main()
