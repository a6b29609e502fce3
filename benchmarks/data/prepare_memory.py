"""Benchmark of the peak memory of `xlnet prepare` by corpus size.

    python -m benchmarks.data.prepare_memory --text=FILE --vocab=DIR [--gigabytes=1,5]
                                             [--directory=DIR]

Repeats a text to each size, runs the command with one worker per core, and samples the total PSS
(proportional set size, which splits shared pages between processes) of all its processes ten times
a second. The last line is a JSON object {gigabytes: peak in megabytes}.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

import psutil
from absl import app, flags

from benchmarks.data.repeated_text import write_repeated

_TEXT = flags.DEFINE_string("text", None, "Plain text to repeat.", required=True)
_VOCAB = flags.DEFINE_string("vocab", None, "Directory of a vocabulary.", required=True)
_GIGABYTES = flags.DEFINE_list("gigabytes", ["1", "5"], "Sizes of the corpus.")
_CONFIG = flags.DEFINE_string("config", "configs/base.yaml", "Configuration of the records.")
_DIRECTORY = flags.DEFINE_string("directory", None, "Working directory; needs 4 times the corpus.")
_SECONDS_BETWEEN = 0.1


def peak_megabytes(command: list[str]) -> float:
    """Runs a command and returns the peak memory of all its processes, in megabytes."""
    process = psutil.Popen(command)
    peak = 0.0
    while process.poll() is None:
        total = 0
        for one in [process, *_children(process)]:
            try:
                total += one.memory_full_info().pss
            except psutil.Error:
                continue  # The process has ended.
        peak = max(peak, total / 1e6)
        time.sleep(_SECONDS_BETWEEN)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return peak


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def main(argv: Sequence[str]) -> None:
    del argv
    peaks = {}
    for gigabytes in _GIGABYTES.value:
        with tempfile.TemporaryDirectory(dir=_DIRECTORY.value) as directory:
            corpus = f"{directory}/corpus.txt"
            write_repeated(_TEXT.value, corpus, int(float(gigabytes) * 1e9))
            start = time.perf_counter()
            peaks[gigabytes] = round(
                peak_megabytes(
                    [
                        *(sys.executable, "-m", "official.xlnet.cli", "prepare"),
                        *(f"--input={corpus}", f"--vocab={_VOCAB.value}"),
                        *(f"--config={_CONFIG.value}", f"--output={directory}/data"),
                    ]
                )
            )
            seconds = time.perf_counter() - start
            print(f"{gigabytes} GB: {peaks[gigabytes]} MB, {seconds:.0f} s", file=sys.stderr)
    print(json.dumps(peaks))


if __name__ == "__main__":
    app.run(main)
