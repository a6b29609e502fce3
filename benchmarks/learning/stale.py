"""Tables of pages that other code measured, with the command above each that renews it.

    python -m benchmarks.learning.stale
    python -m benchmarks.learning.stale --renew=ablation.md:cues

A table is stale if the digest of the model, objectives and data (`harness.tables.measured_with`)
differs from a digest at the end of the table, or if there is none. The last line is JSON:
{table: command}.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess

from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.tables import measured_with

_TABLE = re.compile(r"<!-- table: (\S+) -->.*?<!-- end([^>]*)-->", re.S)
_DIGEST = re.compile(r"sources \w+")
_COMMAND = re.compile(r"^python -m benchmarks\.learning(?:[^\n]*\\\n)*[^\n]*", re.M)


def main() -> None:
    flags = parse(__doc__, renew=flag(None, "PAGE:TABLE to measure again"))
    docs = pathlib.Path("docs")
    if flags.renew:
        subprocess.run(stale(docs)[flags.renew], shell=True, check=True)
    print(json.dumps(stale(docs), indent=1))


def stale(docs: pathlib.Path) -> dict[str, str]:
    """Returns {PAGE:TABLE: command above it} of the tables that today's code did not measure."""
    [today] = measured_with()
    texts = {page.name: page.read_text(encoding="utf-8") for page in sorted(docs.glob("*.md"))}
    return {
        f"{page}:{table[1]}": commands[-1]
        for page, text in texts.items()
        for table in _TABLE.finditer(text)
        if (commands := _COMMAND.findall(text, 0, table.start()))
        and {*_DIGEST.findall(table[2])} != {today}
    }


if __name__ == "__main__":
    main()
