"""Only errors that mean a lost worker end with status 76; all others with their own status."""

import pytest
import tensorflow as tf

from official.xlnet.errors import PeerLostError
from official.xlnet.projects.clusters.lost_workers import lost_worker_error
from tests.helpers.replicas.clusters import recipe_of_replicas, start_cluster

# What TensorFlow 2.20 wrote: two workers, of which one was killed, stopped, or started again.
PEER = "Additional GRPC error information from remote target /job:worker/replica:0/task:1"
UNHEALTHY = (
    "Collective ops is aborted by: Error reported from /job:worker/task:1: The following tasks are "
    "unhealthy (stopped sending heartbeats):\n/job:worker/replica:0/task:1\nThe tasks have crashed."
)
LOST = [
    (f"Collective ops is aborted by: Socket closed\n{PEER} while calling RecvBuf", 14),
    (f"Collective ops is aborted by: recvmsg:Connection reset by peer\n{PEER} while calling", 14),
    (f"Collective ops is aborted by: failed to connect to all addresses; last error\n{PEER}", 14),
    (f"Failed to send RPC to coordination service. Either the leader task\n{PEER} while", 14),
    (UNHEALTHY, 14),
    ("/job:worker/task:1 heartbeat timeout. This indicates that the remote task has failed", 14),
    ("cluster check alive failed, /job:worker/replica:0/task:1 is down", 14),
    (
        "CollectiveAllReduce: Device /job:worker/replica:0/task:1/device:CPU:0 current incarnation "
        "doesn't match with one in the group. This usually means this worker has restarted",
        9,
    ),
]
TRACEBACK = 'Graph execution error:\n\n  File "/connect/heartbeat.py", line 3, in Connection\n\n'
OTHERS = [
    # Operations that differ, with the error that the other worker has found.
    (f"Collective ops is aborted by: Shape mismatch in the collective instance 100. Op\n{PEER}", 3),
    (f"Collective ops is aborted by: Collective instance 101 expected type 0 and\n{PEER}", 13),
    (f"{TRACEBACK}OOM when allocating tensor on /job:worker/replica:0/task:1/device:CPU:0", 8),
    (f"{TRACEBACK}Input to reshape is a tensor with 5 values, but the requested shape has 7", 3),
    (f"{TRACEBACK}cuInit: the device is unhealthy", 13),
    ("could not connect to s3://bucket: Socket closed", 14),
    ("ConnectionError: Connection refused [[{{node PyFunc}}]] [Op:IteratorGetNext]", 2),
]
TF_ERRORS = {
    2: tf.errors.UnknownError,
    3: tf.errors.InvalidArgumentError,
    8: tf.errors.ResourceExhaustedError,
    9: tf.errors.FailedPreconditionError,
    13: tf.errors.InternalError,
    14: tf.errors.UnavailableError,
}


@pytest.mark.parametrize(("message", "code"), LOST)
def test_errors_of_lost_workers(message, code):
    error = lost_worker_error(TF_ERRORS[code](None, None, message), ("worker", 0))
    assert isinstance(error, PeerLostError)
    assert str(error).startswith("workers: lost worker 1; run the same command again"), error


@pytest.mark.parametrize(("message", "code"), OTHERS)
def test_other_errors(message, code):
    assert lost_worker_error(TF_ERRORS[code](None, None, message), ("worker", 0)) is None
    assert lost_worker_error(ValueError(UNHEALTHY), ("worker", 0)) is None


def test_this_worker_is_not_the_lost_one():
    error = tf.errors.UnavailableError(None, None, UNHEALTHY)
    assert "lost another worker" in str(lost_worker_error(error, ("worker", 1)))


@pytest.mark.nightly
def test_the_worker_with_a_bug_says_so(world, tmp_path, tmp_path_factory):
    """The other one has lost it: a launcher goes by the status of each."""
    recipe = recipe_of_replicas(world, tmp_path_factory, ["num_lanes=8", "batch_size=8"])
    flags = ["pretrain", f"--config={recipe}", f"--data={recipe}/data", f"--output={tmp_path}/m"]
    program = "tests.projects.clusters.one_worker_fails"
    ends = []
    for process in start_cluster("multi_worker", flags, program=program):
        _, err = process.communicate(timeout=300)
        ends.append((process.returncode, err))
    assert [status for status, _ in ends] == [76, 1], ends
    assert "Shape mismatch" in ends[1][1]
    assert "workers: lost worker 1; run the same command again" in ends[0][1]
