"""Settings and promises that the fuzz tests share; `XLNET_FUZZ_CASES` is the number of cases."""

import json
import os
import resource
import time

from hypothesis import HealthCheck, Phase, settings

from official.xlnet import cli
from tests.helpers.wrong_input import MOST_LINES, STATUSES, strict_json

CASES = int(os.environ.get("XLNET_FUZZ_CASES", "100"))
IS_LONG = CASES > 300
SECONDS = 60
MOST_BYTES = 8 << 30  # Of the whole process.


def tried(share):
    """Settings of a test that has a share of the cases."""
    return settings(
        max_examples=max(10, round(CASES * share)),
        deadline=None,
        derandomize=not IS_LONG,
        database=None,
        phases=[Phase.generate, Phase.shrink] if IS_LONG else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def run(capfd, arguments):
    """Runs a verb, checks what every verb promises, and returns its status and its result."""
    capfd.readouterr()
    start, start_cpu = time.monotonic(), time.process_time()
    status = cli.main(arguments)
    captured = capfd.readouterr()
    # On a busy machine the clock runs on while others work.
    assert min(time.monotonic() - start, time.process_time() - start_cpu) < SECONDS, arguments
    assert status in STATUSES, (arguments, captured.err[-2000:])
    if status:
        assert "Traceback" not in captured.err, (arguments, captured.err[-2000:])
        lines = captured.err.splitlines()
        assert 0 < len(lines) <= MOST_LINES, (arguments, captured.err[-2000:])
        assert len(captured.err) < 4000
        assert all(line.isprintable() for line in lines), (arguments, captured.err)
    return status, strict_json(captured.out.splitlines()[-1]) if not status else None


def report(counts):
    """Prints what the cases ended with, and checks the memory of the process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert peak < MOST_BYTES
    print(json.dumps(counts, indent=1, sort_keys=True))
