"""Runs journeys by the thousand: python -m tests.property.journeys --n=1000.

Every fourth journey visits all its verbs and takes about ten times as long as the others, which
visit a few. Processes run some journeys each, so that memory stays bounded, and append what they
found to `results.jsonl` of the output folder; the same command goes on with what is missing there.
The end is a table; the exit status is 1 if there was a violation.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

from official.xlnet.cli import set_environment_defaults

_SECONDS = 900  # In which a journey has to end.


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1000, help="number of journeys")
    parser.add_argument("--first", type=int, default=0, help="number, and seed, of the first one")
    parser.add_argument("--only", type=int, help="repeats one journey")
    parser.add_argument("--change", default="{}", help="with --only: changes to it, in JSON")
    parser.add_argument(
        "--long_every",
        type=int,
        default=4,
        help="one journey in so many is long; 0: none",
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--per_process", type=int, default=20)
    parser.add_argument("--shrink", type=float, default=0, help="seconds for each violation")
    parser.add_argument("--output", default="build/journeys")
    parser.add_argument("--run", help=argparse.SUPPRESS)  # Numbers, in a process of its own.
    arguments = parser.parse_args()
    if arguments.run or arguments.only is not None:
        return _run(arguments)
    return _run_all(arguments)


def _run_all(arguments: argparse.Namespace) -> int:
    folder = pathlib.Path(arguments.output)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "results.jsonl"
    wanted = range(arguments.first, arguments.first + arguments.n)
    running: list[tuple[subprocess.Popen, list[int], float]] = []
    waiting = [n for n in wanted if n not in _results(file)]
    while waiting or running:
        while waiting and len(running) < arguments.processes:
            part, waiting = waiting[: arguments.per_process], waiting[arguments.per_process :]
            running.append((_start(arguments, part), part, time.monotonic()))
        time.sleep(1)
        done = _results(file)
        for entry in list(running):
            process, part, begun = entry
            left = [n for n in part if n not in done]
            if time.monotonic() - begun > _SECONDS * (len(part) - len(left) + 1):
                process.kill()
            if process.poll() is not None:
                running.remove(entry)
                if left:  # The first of them ended the process.
                    is_short = _is_short(left[0], arguments)
                    _append(file, left[0], is_short, "the process ended", {}, "", "")
                    waiting = left[1:] + waiting
        shown = f"\r{sum(n in done for n in wanted)} of {len(wanted)} journeys"
        print(shown, end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    from tests.property.journeys.table import table

    results = [result for n, result in sorted(_results(file).items()) if n in wanted]
    print(table(results))
    return int(any(r["violation"] and not r["known"] for r in results))


def _start(arguments: argparse.Namespace, numbers: list[int]) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.property.journeys", f"--output={arguments.output}"]
    command += [f"--run={','.join(map(str, numbers))}", f"--shrink={arguments.shrink}"]
    command.append(f"--long_every={arguments.long_every}")
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _run(arguments: argparse.Namespace) -> int:
    set_environment_defaults()
    import tensorflow as tf

    from tests.property.journeys.draws.drawing import REPLICAS, draw
    from tests.property.journeys.journey import known, travel
    from tests.property.journeys.shrinking import merged, shrink

    [cpu] = tf.config.list_physical_devices("CPU")
    devices = [tf.config.LogicalDeviceConfiguration()] * REPLICAS
    tf.config.set_logical_device_configuration(cpu, devices)
    number = arguments.only
    if number is not None:
        journey = merged(draw(number, _is_short(number, arguments)), json.loads(arguments.change))
        print(json.dumps(journey, ensure_ascii=False))
        travelled = travel(journey)
        print(json.dumps(travelled.counts, indent=1))
        print(travelled.violation or "no violation")
        return int(bool(travelled.violation))
    file = pathlib.Path(arguments.output) / "results.jsonl"
    for number in map(int, arguments.run.split(",")):
        is_short = _is_short(number, arguments)
        journey = draw(number, is_short)
        travelled = travel(journey)
        name, change = known(travelled.violation), ""
        if travelled.violation and not name and arguments.shrink:
            change = json.dumps(shrink(journey, travelled.violation, arguments.shrink))
        _append(file, number, is_short, travelled.violation, travelled.counts, name, change)
    return 0


def _is_short(number: int, arguments: argparse.Namespace) -> bool:
    return arguments.long_every == 0 or number % arguments.long_every != 0


def _append(
    file, number: int, is_short: bool, violation: str, counts, name: str, shrunken: str
) -> None:
    line = {
        "number": number,
        "is_short": is_short,
        "violation": violation,
        "known": name,
        "counts": counts,
    }
    with open(file, "a") as out:
        out.write(json.dumps(line) + "\n")
        out.flush()
        os.fsync(out.fileno())


def _results(file: pathlib.Path) -> dict[int, dict]:
    if not file.exists():
        return {}
    return {r["number"]: r for r in map(json.loads, file.read_text().splitlines())}


if __name__ == "__main__":
    sys.exit(main())
