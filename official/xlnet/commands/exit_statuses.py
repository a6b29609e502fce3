"""Exit statuses of the `xlnet` command, and after which of them it is worth a restart.

The launch files in `tools/launch` and the table of `docs/reliability.md` follow this one; a test
compares them.
"""

from __future__ import annotations

import enum

from official.xlnet.errors import DivergedError, PeerLostError, PreemptedError

SUCCESS = 0
BUG = 1
WRONG_INPUT = 2
BROKEN_PIPE = 141

# Shells and schedulers add 128 to the number of the signal that ended a process.
INTERRUPTED = 130  # SIGINT
ABORTED = 134  # SIGABRT
KILLED = 137  # SIGKILL
CRASHED = 139  # SIGSEGV
PEER_LOST_AT_START = 142  # SIGALRM, see `projects.clusters.multi_worker`.
TERMINATED = 143  # SIGTERM

MAX_IN_A_ROW = 3  # Launch files do not restart a run that has ended so often in the same way.


class Restart(enum.Enum):
    """What a launch file does after an exit status; the value is that of the documentation."""

    NEVER = "no"  # The same command would end in the same way, or its user has ended it.
    ALWAYS = "yes"
    LIMITED = "up to twice"  # Up to `MAX_IN_A_ROW` times in a row.
    # The same; where a launcher knows the status of each worker, that of the lost one decides.
    WITH_LOST_WORKER = "all workers, up to twice"


RESTARTS = {
    SUCCESS: Restart.NEVER,
    BUG: Restart.NEVER,
    WRONG_INPUT: Restart.NEVER,
    DivergedError.exit_status: Restart.NEVER,
    PreemptedError.exit_status: Restart.ALWAYS,
    PeerLostError.exit_status: Restart.WITH_LOST_WORKER,
    INTERRUPTED: Restart.NEVER,
    ABORTED: Restart.LIMITED,
    KILLED: Restart.LIMITED,
    CRASHED: Restart.LIMITED,
    BROKEN_PIPE: Restart.NEVER,
    PEER_LOST_AT_START: Restart.WITH_LOST_WORKER,
    TERMINATED: Restart.LIMITED,
}
