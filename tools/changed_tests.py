"""Prints the test files that the changes since `main` can break, from the cheapest on.

A file depends on the modules that it imports. A test or a program depends, too, on the modules that
are imported when a name is looked up (a verb, a public name, a value of a setting), if it has that
name in a string or as an attribute, and on other files whose name, or whose folder and `*.suffix`,
is in its strings.

  make test-changed
"""

from __future__ import annotations

import ast
import collections
import itertools
import json
import pathlib
import re
import subprocess
from collections.abc import Collection

from official import xlnet
from official.xlnet.configs import registry

ROOT = pathlib.Path(__file__).parents[1]
_COSTS = ROOT / "build/costs.json"  # Of earlier runs; see tests/costs.py.
_BREAK_ALL = {"tests/conftest.py", "tests/costs.py", "pyproject.toml", "requirements.lock"}
_TYPES_ONLY = re.compile(r"^if TYPE_CHECKING:.*\n(?:    .*\n|\n)*", re.MULTILINE)
_IMPORT = re.compile(r"from ([\w.]+) import (\([^)]*|.*)")
_WORD = re.compile(r"[\w*](?:[\w*.-]*[\w*])?")


def main() -> None:
    """Prints the files, one a line."""
    costs = json.loads(_COSTS.read_text()) if _COSTS.exists() else {}
    base, *_ = [*_git("merge-base", "HEAD", "main"), "HEAD"]
    changed = {*_git("diff", "--name-only", base), *_git("ls-files", "-o", "--exclude-standard")}
    found = tests_of(changed, dependencies({*_git("ls-files"), *changed}))

    def cost(path: str) -> tuple[float, bool, str]:
        known = [costs[test] for test in costs if test.startswith(f"{path}::")]
        return sum(known) if known else 5, "/unit/" not in path, path

    print("\n".join(sorted(found, key=cost)))


def _git(*arguments: str) -> list[str]:
    return subprocess.run(["git", *arguments], capture_output=True, text=True).stdout.split()


def tests_of(changed: Collection[str], depends_on: dict[str, set[str]]) -> set[str]:
    """The test files that depend on one of the changed files."""
    tests = {path for path in depends_on if re.search(r"^tests/.*/test_\w+\.py$", path)}
    reached = more = {*changed}
    while more:
        more = {path for path, used in depends_on.items() if used & more} - reached
        reached = reached | more
    return tests if _BREAK_ALL & {*changed} else tests & reached


def dependencies(files: Collection[str]) -> dict[str, set[str]]:
    """{existing file: the files that it depends on directly}."""
    of_module = {re.sub(r"(/__init__)?\.py$", "", path).replace("/", "."): path for path in files}
    named, looked_up = collections.defaultdict(set), _looked_up()
    for path in map(pathlib.PurePath, files):
        globs = [(folder, f"*{path.suffix}") for folder in path.parts[:-1]] * bool(path.suffix)
        for key in (path.name, *globs, *[path.stem] * (path.suffix == ".yaml")):
            named[key].add(str(path))
    found: dict[str, set[str]] = {}
    for name in filter(lambda name: (ROOT / name).is_file(), files):
        modules, names, strings = _mentions(name)
        names &= {*xlnet.__all__, "world"}
        modules |= {module for key, module in looked_up if key in modules | names | strings}
        packages = (itertools.accumulate(x.split("."), "{}.{}".format) for x in modules | strings)
        found[name] = {of_module[x] for x in of_module.keys() & itertools.chain(*packages)}
        keys = strings | {*itertools.product(strings, (x for x in strings if x[:2] == "*."))}
        found[name] = found[name].union(*(named[key] for key in named.keys() & keys))
    return found


def _mentions(path: str) -> tuple[set[str], set[str], set[str]]:
    """Imported modules, names in the code and words in the strings of a file.

    Of the product, only imports; of a recipe, the words of its values.
    """
    text = _TYPES_ONLY.sub("", (ROOT / path).read_text(encoding="utf-8", errors="ignore"))
    if not path.endswith(".py"):
        return set(), set(), {*_WORD.findall(re.sub("#.*", "", text) * path.endswith(".yaml"))}
    modules = {*re.findall(r"for \w+ in (\w+)\.names\(\)", text)}  # Of a registry.
    for parent, names in _IMPORT.findall(text):  # Also of a program in a string.
        modules |= {f"{parent}.{name}" for name in _WORD.findall(names)}
    nodes = [] if path.startswith(("official/", "data_prep/")) else [*ast.walk(ast.parse(text))]
    names = {str(getattr(x, field, "")) for x in nodes for field in ("name", "attr", "arg")}
    prose = [node.value for node in nodes if isinstance(node, ast.Expr)]
    strings = " ".join(
        str(x.value) for x in nodes if isinstance(x, ast.Constant) and x not in prose
    )
    return modules, names, {*_WORD.findall(strings), *re.findall(r"\w+", strings)}


def _looked_up() -> list[tuple[str, str]]:
    """Pairs of a name, or a registry, and a module that is imported when it is looked up."""
    pairs = [*xlnet._MODULE_OF.items(), ("world", "tests.helpers.world")]
    for table, entries in vars(registry).items():
        for name, module in getattr(entries, "modules", {}).items():
            pairs += [(name, f"official.xlnet.{module}"), (table, f"official.xlnet.{module}")]
    verbs = registry.VERBS.modules
    pairs += [(verb.split()[0], f"official.xlnet.{module}") for verb, module in verbs.items()]
    return pairs


if __name__ == "__main__":
    main()
