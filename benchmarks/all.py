"""Runs all performance benchmarks and writes the tables of docs/performance.md.

    python -m benchmarks.all                      all phases, more than an hour
    python -m benchmarks.all --phases=train_base3,recompute_base3
    python -m benchmarks.all --phases=none        only tables, from saved results

Results are saved to docs/performance.json after each phase, so that phases can be repeated
separately. The machine should be idle.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from absl import app, flags, logging

from benchmarks.reports import report
from benchmarks.reports.phases import PHASES
from official.xlnet.runtime.cores import num_cores

RESULTS = "docs/performance.json"
_LIBRARIES = ("tensorflow", "tf-keras", "tf-models-official", "torch", "transformers")


def main(argv: Sequence[str]) -> None:
    del argv
    wanted = [] if _PHASES.value == ["none"] else _PHASES.value or list(PHASES)
    unknown = sorted(set(wanted) - set(PHASES))
    if unknown:
        raise app.UsageError(f"unknown phases {unknown}; expected some of {', '.join(PHASES)}")
    results = _read()
    for number, name in enumerate(wanted):
        logging.info("phase %s (%d of %d)", name, number + 1, len(wanted))
        measured = PHASES[name]()
        results["phases"][name] = {"date": datetime.date.today().isoformat(), "measured": measured}
        results["cores"] = num_cores()
        results["versions"] = _versions()
        _write(results)
    report.write(results)
    print(json.dumps({"phases": wanted, **report.summary(results)}))


def _read() -> dict[str, Any]:
    try:
        with open(RESULTS, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {"phases": {}}


def _write(results: dict[str, Any]) -> None:
    with open(RESULTS + ".tmp", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1, sort_keys=True)
        file.write("\n")
    os.replace(RESULTS + ".tmp", RESULTS)


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return versions


if __name__ == "__main__":
    _PHASES = flags.DEFINE_list("phases", [], "Phases to run; default: all; none: report only.")
    app.run(main)
