"""Benchmark of the peak memory of `xlnet prepare` by corpus size.

    python -m benchmarks.data.prepare_memory --text=FILE --vocab=DIR [--gigabytes=1,5]
                                             [--directory=DIR]

Repeats a text to each size, runs the command with one worker per core, and samples the total PSS
(proportional set size, which splits shared pages between processes) of all its processes ten times
a second. The last line is a JSON object {gigabytes: peak in megabytes}.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import psutil

from benchmarks.data.repeated_text import write_repeated
from benchmarks.harness.command_line import flag, parse, required

_SECONDS_BETWEEN = 0.1


class Peaks(NamedTuple):
    """The most that all processes of a command used at once: memory in MB, and open files."""

    megabytes: float
    open_files: int


def peaks(command: list[str]) -> Peaks:
    """Runs a command and returns the peaks of all its processes."""
    process = psutil.Popen(command)
    megabytes, open_files = 0.0, 0
    while process.poll() is None:
        with contextlib.suppress(psutil.Error):  # A process has ended.
            everyone = [process, *process.children(recursive=True)]
            megabytes = max(megabytes, sum(one.memory_full_info().pss for one in everyone) / 1e6)
            open_files = max(open_files, sum(one.num_fds() for one in everyone))
        time.sleep(_SECONDS_BETWEEN)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Peaks(megabytes, open_files)


def peak_megabytes(command: list[str]) -> float:
    """Runs a command and returns the peak memory of all its processes, in megabytes."""
    return peaks(command).megabytes


def main() -> None:
    flags = parse(
        __doc__,
        text=required("plain text to repeat"),
        vocab=required("directory of a vocabulary"),
        gigabytes=flag(["1", "5"], "sizes of the corpus"),
        config=flag("configs/base.yaml", "configuration of the records"),
        directory=flag(None, "working directory; needs 4 times the corpus"),
    )
    peaks = {}
    for gigabytes in flags.gigabytes:
        with tempfile.TemporaryDirectory(dir=flags.directory) as directory:
            corpus = f"{directory}/corpus.txt"
            write_repeated(flags.text, corpus, int(float(gigabytes) * 1e9))
            command = [
                sys.executable,
                "-m",
                "official.xlnet.cli",
                "prepare",
                f"--input={corpus}",
                f"--vocab={flags.vocab}",
                f"--config={flags.config}",
                f"--output={directory}/data",
            ]
            start = time.perf_counter()
            peaks[gigabytes] = round(peak_megabytes(command))
            seconds = time.perf_counter() - start
            print(f"{gigabytes} GB: {peaks[gigabytes]} MB, {seconds:.0f} s", file=sys.stderr)
    print(json.dumps(peaks))


if __name__ == "__main__":
    main()
