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
import pathlib
import platform
from importlib import metadata

from absl import logging

from benchmarks.harness.command_line import flag, parse
from benchmarks.reports import report
from benchmarks.reports.phases import PHASES
from official.xlnet.files.json_files import write_json
from official.xlnet.runtime.cores import num_cores

RESULTS = pathlib.Path("docs/performance.json")
_LIBRARIES = ("tensorflow", "keras", "tf-models-official", "torch", "transformers")


def main() -> None:
    flags = parse(__doc__, phases=flag(list(PHASES), "phases to run; none: report only"))
    wanted = [] if flags.phases == ["none"] else flags.phases
    unknown = sorted(set(wanted) - set(PHASES))
    if unknown:
        raise SystemExit(f"unknown phases {unknown}; expected some of {', '.join(PHASES)}")
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    for number, name in enumerate(wanted):
        logging.info("phase %s (%d of %d)", name, number + 1, len(wanted))
        measured = PHASES[name]()
        results["phases"][name] = {"date": datetime.date.today().isoformat(), "measured": measured}
        results |= {"cores": num_cores(), "versions": _versions()}
        write_json(str(RESULTS), json.loads(json.dumps(results, sort_keys=True)))
    report.write(results)
    print(json.dumps({"phases": wanted, **report.summary(results)}))


def _versions() -> dict[str, str]:
    installed = {entry.name.lower(): entry.version for entry in metadata.distributions()}
    libraries = {name: installed[name] for name in _LIBRARIES if name in installed}
    return {"python": platform.python_version(), **libraries}


if __name__ == "__main__":
    main()
