"""The cluster that a process belongs to, from the variables that its launcher sets."""

from __future__ import annotations

import json
import os

import tensorflow as tf

from official.xlnet.configs.choices import CLUSTER_TIMEOUT
from official.xlnet.errors import ConfigError
from official.xlnet.projects.clusters.rendezvous import meet

# Jobs on the same node need different ports: each job has a range of TASKS_ON_A_NODE ports.
FIRST_PORT, NUM_PORTS, TASKS_ON_A_NODE = 20000, 10000, 16

_RANKS = ("RANK", "JOB_COMPLETION_INDEX")  # Set by torchrun, and by an indexed Job of Kubernetes.


def find_cluster(
    num_gpus: int, timeout_seconds: float = CLUSTER_TIMEOUT
) -> tf.distribute.cluster_resolver.ClusterResolver:
    """Returns the cluster of this process, once all of its workers have started.

    The cluster is described by TF_CONFIG; by the variables WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
    RANK, as torchrun sets them, with JOB_COMPLETION_INDEX in place of RANK in a Job of Kubernetes;
    or consists of all tasks of a Slurm job step.

    Args:
      num_gpus: number of GPUs that are visible to this process. If torchrun starts several
        processes on a host, each of them uses one.
      timeout_seconds: longest wait for the other workers, in seconds.

    Raises:
      ConfigError: there is no cluster, or its variables contradict each other.
      PeerLostError: a worker did not start in time.
    """
    try:
        index, known_addresses = _from_environment()
        for address in known_addresses:
            if address:
                int(address.rpartition(":")[2])  # The port is a number.
    except KeyError as error:
        raise ConfigError(
            f"strategy: multi_worker expected the variable {error}, got none"
        ) from None
    except (AttributeError, RuntimeError, TypeError, ValueError) as error:
        raise ConfigError(f"strategy: multi_worker cannot use this cluster: {error}") from None
    if not 0 <= index < len(known_addresses):
        raise ConfigError(
            "strategy: multi_worker expected a cluster, in TF_CONFIG, by srun or by torchrun, got "
            f"worker {index} of {len(known_addresses)} (docs/clusters.md)"
        )
    addresses = meet(index, known_addresses, timeout_seconds)
    is_of_torchrun = "" in known_addresses
    if is_of_torchrun and num_gpus and int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > 1:
        gpu = tf.config.list_physical_devices("GPU")[int(os.environ["LOCAL_RANK"])]
        tf.config.set_visible_devices(gpu, "GPU")
        num_gpus = 1
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": addresses}),
        task_type="worker",
        task_id=index,
        num_accelerators={"GPU": num_gpus},
        rpc_layer="grpc",
    )


def _from_environment() -> tuple[int, list[str]]:
    """Returns the index of this worker, and the addresses of all workers, empty where unknown."""
    if "TF_CONFIG" in os.environ:
        return _from_tf_config(os.environ["TF_CONFIG"])
    ranks = [os.environ[name] for name in _RANKS if name in os.environ]
    if ranks and "WORLD_SIZE" in os.environ:
        port = int(os.environ["MASTER_PORT"]) + 1  # torchrun itself listens at MASTER_PORT.
        unknown_addresses = [""] * (int(os.environ["WORLD_SIZE"]) - 1)
        return int(ranks[0]), [f"{os.environ['MASTER_ADDR']}:{port}", *unknown_addresses]
    if "SLURM_STEP_NODELIST" in os.environ:
        return _from_slurm()
    return 0, []


def _from_tf_config(text: str) -> tuple[int, list[str]]:
    """Returns the same for a value of TF_CONFIG; its chief, if any, is the first worker."""
    tf_config = json.loads(text)
    cluster, task = tf_config.get("cluster", {}), tf_config.get("task", {})
    jobs = {name: [*cluster.get(name, [])] for name in ("chief", "worker")}
    task_type, index = task.get("type"), int(task.get("index", -1))
    if not 0 <= index < len(jobs.get(task_type, [])):
        raise ValueError(
            "expected a task of the type chief or worker in TF_CONFIG, with its index in that "
            f"list, got the type {task_type!r} and the index {task.get('index')!r}"
        )
    if task_type == "worker":
        index += len(jobs["chief"])
    return index, jobs["chief"] + jobs["worker"]


def _from_slurm() -> tuple[int, list[str]]:
    """Returns the same for a task of a Slurm job step."""
    port = FIRST_PORT + int(os.environ["SLURM_JOB_ID"]) * TASKS_ON_A_NODE % NUM_PORTS
    # By default TensorFlow asks nvidia-smi for GPUs, and lists no task where there are none.
    step = tf.distribute.cluster_resolver.SlurmClusterResolver(
        port_base=port, gpus_per_node=NUM_PORTS, gpus_per_task=1, auto_set_gpu=False
    )
    addresses = step.cluster_spec().as_dict()["worker"]
    # The rank is not the index: TensorFlow sorts the nodes by name, and srun
    # --distribution=cyclic numbers the tasks of all nodes in turn.
    address = f"{os.environ['SLURMD_NODENAME']}:{port + int(os.environ['SLURM_LOCALID'])}"
    return addresses.index(address), addresses
