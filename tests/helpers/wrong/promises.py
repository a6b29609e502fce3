"""Cases and promises that the fuzz tests share; `XLNET_FUZZ_CASES` is the number of cases."""

import collections
import json
import os
import resource
import time

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from official.xlnet.errors import XLNetError
from tests.helpers.wrong_input import MOST_LINES, STATUSES
from tests.helpers.wrong_input import run as run_verb

CASES = int(os.environ.get("XLNET_FUZZ_CASES", "100"))
IS_LONG = CASES > 300
SECONDS = 60
MOST_BYTES = 8 << 30  # Of the whole process.


def fuzz(share, check):
    """Calls `check(draw)` with a share of the cases; prints which words it returned how often."""
    counts = collections.Counter()

    @settings(
        max_examples=max(10, round(CASES * share)),
        deadline=None,
        derandomize=not IS_LONG,
        database=None,
        phases=[Phase.generate, Phase.shrink] if IS_LONG else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def cases(data):
        start, start_cpu = time.monotonic(), time.process_time()
        counts[check(data.draw)] += 1
        # On a busy machine the clock runs on while others work.
        assert min(time.monotonic() - start, time.process_time() - start_cpu) < SECONDS

    cases()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < MOST_BYTES
    print(json.dumps(counts, indent=1, sort_keys=True))
    return counts


def attempt(call):
    """("done", the result of a call), or ("refused", None) after a sentence."""
    try:
        return "done", call()
    except XLNetError as error:
        assert 0 < len(str(error)) < 500 and "\n" not in str(error)
        return "refused", None


def run(capfd, arguments):
    """Runs a verb, checks what every verb promises, and returns its status and its result."""
    outcome = run_verb(capfd, *arguments)
    assert outcome.status in STATUSES, (arguments, outcome.err[-2000:])
    if outcome.status == 0:
        return 0, outcome.result
    lines = outcome.err.splitlines()
    assert 0 < len(lines) <= MOST_LINES and len(outcome.err) < 4000, (arguments, lines)
    assert all(line.isprintable() for line in lines), (arguments, lines)
    assert "Traceback" not in outcome.err
    return outcome.status, None
