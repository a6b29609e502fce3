"""Errors of TensorFlow by which a worker learns that another one was lost: a positive list.

Any other error, also of a collective operation, is one of this worker and has its own exit status:
if it were said to be a lost worker, a launcher would repeat a bug for ever.
"""

from __future__ import annotations

import re

import tensorflow as tf

from official.xlnet.errors import PeerLostError

# Of UnavailableError: a call to another worker whose connection is closed or refused; TensorFlow's
# coordination service, to which workers report every few seconds; its health check without it.
_UNREACHABLE = re.compile(
    r"GRPC error information from remote target /job:"
    r"|stopped sending heartbeats|heartbeat timeout"
    r"|cluster check alive failed"
)
# Of other errors: another worker was started anew and has forgotten the operations of this run.
_STARTED_ANEW = re.compile(
    r"incarnation doesn't match|different (?:device )?incarnation|[Ii]ncarnation ID mismatch"
)


def lost_worker_error(error: Exception, this_worker: tuple[str, int]) -> PeerLostError | None:
    """Returns the error for the user if an error means that another worker was lost, else None.

    Args:
      error: any error.
      this_worker: type and index of the task of this process.
    """
    if not isinstance(error, tf.errors.OpError):
        return None
    is_unreachable = isinstance(error, tf.errors.UnavailableError) and _UNREACHABLE.search(
        error.message
    )
    if not is_unreachable and not _STARTED_ANEW.search(error.message):
        return None
    tasks = set(re.findall(r"/job:(\w+)/(?:replica:0/)?task:(\d+)", error.message))
    tasks -= {(this_worker[0], str(this_worker[1]))}
    lost = [f"{job} {index}" for job, index in sorted(tasks)] or ["another worker"]
    return PeerLostError(
        f"workers: lost {', '.join(lost)}; run the same command again on all of them to resume "
        "from the last checkpoint"
    )
