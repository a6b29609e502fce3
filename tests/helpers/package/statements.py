"""Counts of statements that a command has imported: what one has to read to know how it works.

`python -m tests.helpers.package.statements VERB …` runs a command; the last line of its standard
error is {module of ours: number of statements}, of all modules that are imported when it ends.
Docstrings and imports do not count.
"""

import ast
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[3]
PACKAGES = ("official.xlnet", "data_prep")


def statements(text):
    """Number of statements in a module's text, without docstrings and imports."""
    number = 0
    for node in ast.walk(ast.parse(text)):
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_docstring = is_text and isinstance(node.value.value, str)
        number += isinstance(node, ast.stmt) and not is_import and not is_docstring
    return number


def imported():
    """{module of ours that is imported: number of its statements}."""
    counts = {}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None) or ""
        if name.startswith(PACKAGES) and path.endswith(".py"):
            counts[name] = statements(pathlib.Path(path).read_text(encoding="utf-8"))
    return counts


def imported_by(verb, *arguments, **flags):
    """{module: number of statements} of a command, which runs in a process of its own."""
    command = [sys.executable, "-m", "tests.helpers.package.statements", *verb.split(), *arguments]
    for name, value in flags.items():
        command.append(f"--{name}={value}")
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stderr.splitlines()[-1])


def main():
    """Runs the command of the arguments, and says what it has imported."""
    from official.xlnet import cli

    status = cli.main(sys.argv[1:])
    print(json.dumps(imported()), file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
