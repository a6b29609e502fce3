"""Exit statuses of the `xlnet` command, and after which of them it is worth a restart.

The launch files in `tools/launch` and the table of `docs/reliability.md` follow this one; a test
compares them.
"""

from __future__ import annotations

import enum

from official.xlnet.errors import DivergedError, PeerLostError, PreemptedError

MAX_IN_A_ROW = 3  # Launch files do not restart a run that has ended so often in the same way.


class Restart(enum.Enum):
    """What a launch file does after an exit status; the value is that of the documentation."""

    NEVER = "no"  # The same command would end in the same way, or its user has ended it.
    ALWAYS = "yes"
    LIMITED = "up to twice"  # Until it has ended so `MAX_IN_A_ROW` times in a row.
    WITH_LOST_WORKER = "all workers, up to twice"  # The same, for the workers that have lost one.


RESTARTS = {
    0: Restart.NEVER,
    1: Restart.NEVER,  # A bug.
    2: Restart.NEVER,  # Wrong input.
    DivergedError.exit_status: Restart.NEVER,
    PreemptedError.exit_status: Restart.ALWAYS,
    PeerLostError.exit_status: Restart.WITH_LOST_WORKER,
    # Shells and schedulers add 128 to the number of the signal that ended a process.
    130: Restart.NEVER,  # SIGINT
    134: Restart.LIMITED,  # SIGABRT
    137: Restart.LIMITED,  # SIGKILL
    139: Restart.LIMITED,  # SIGSEGV
    141: Restart.NEVER,  # SIGPIPE
    142: Restart.WITH_LOST_WORKER,  # SIGALRM, see `projects.clusters.multi_worker`.
    143: Restart.LIMITED,  # SIGTERM
}
