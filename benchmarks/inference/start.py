"""Benchmark of the start of commands: CPU time of ten texts, beside `import tensorflow` alone.

    python -m benchmarks.inference.start --table=CONTRIBUTING.md

A network of two layers is pre-trained and fine-tuned for a few steps; then `import tensorflow` in
Python and commands that read ten lines take turns, each in a process of its own. The last line is
JSON: CPU-seconds, the median of the rounds.
"""

from __future__ import annotations

import json
import os
import pathlib
import pydoc_data.topics
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.tables import fill_table, markdown_table

_IMPORT = "import tensorflow"
_NUM_LINES = 10
_VOCAB_TEXT_CHARS = 250_000


def main() -> None:
    flags = parse(
        __doc__,
        rounds=flag(5, "turns of each"),
        table=flag(None, "document to write the table into"),
    )
    with tempfile.TemporaryDirectory() as folder:
        commands = {_IMPORT: ["-c", _IMPORT], **_commands(pathlib.Path(folder))}
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(flags.rounds + 1):
            for name, arguments in commands.items():
                seconds[name].append(_cpu_seconds(arguments))
    # The first round has compiled bytecode and filled the cache of files.
    medians = {name: statistics.median(times[1:]) for name, times in seconds.items()}
    if flags.table:
        rows = [
            (f"`{name}`", f"{median:.2f}", f"{median / medians[_IMPORT]:.2f}")
            for name, median in medians.items()
        ]
        table = markdown_table([("", "CPU-seconds", "of the import"), *rows])
        fill_table(flags.table, "start", table)
    print(json.dumps({name: round(median, 3) for name, median in medians.items()}))


def _commands(folder: pathlib.Path) -> dict[str, list[str]]:
    """Arguments of Python for commands that read ten texts; makes the models that they use."""
    text = "\n\n".join(pydoc_data.topics.topics.values())[:_VOCAB_TEXT_CHARS]
    (folder / "text.txt").write_text(text, encoding="utf-8")
    lines = [f"The sentence with number {number} is short." for number in range(_NUM_LINES)]
    (folder / "lines.txt").write_text("\n".join(["text", *lines]) + "\n", encoding="utf-8")
    labels = ("bad", "good")
    rows = [f"{labels[n % 2]}\tThis one, row {n}, is {labels[n % 2]}." for n in range(64)]
    (folder / "rows.tsv").write_text("\n".join(["label\ttext", *rows]) + "\n", encoding="utf-8")

    recipe = "--config=configs/tiny.yaml"
    vocab, data, model, task = (folder / name for name in ("vocab", "data", "model", "task"))
    table = folder / "rows.tsv"
    _run("vocab", f"--input={folder / 'text.txt'}", f"--output={vocab}", "--size=500")
    _run(
        "prepare", f"--input={folder / 'text.txt'}", f"--vocab={vocab}", recipe, f"--output={data}"
    )
    _run("pretrain", recipe, f"--data={data}", f"--output={model}", "--steps=4")
    _run(
        "finetune",
        "--task=classification",
        f"--train={table}",
        f"--dev={table}",
        f"--init_from={model}",
        f"--output={task}",
        "--set=task.epochs=1",
    )
    return {
        "xlnet score --text": _verb("score", f"--model={model}", *(f"--text={x}" for x in lines)),
        "xlnet predict": _verb(
            "predict", f"--model={task}", f"--input={folder / 'lines.txt'}", "--output=-"
        ),
        "xlnet embed": _verb(
            "embed", f"--model={model}", f"--input={folder / 'lines.txt'}", "--output=-"
        ),
    }


def _verb(verb: str, *arguments: str) -> list[str]:
    return ["-m", "official.xlnet.cli", verb, *arguments]


def _run(verb: str, *arguments: str) -> None:
    _cpu_seconds(_verb(verb, *arguments))


def _cpu_seconds(arguments: Sequence[str]) -> float:
    """CPU-seconds of a Python process, of the user and of the system."""
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env=variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)}: exit status {process.returncode}")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
