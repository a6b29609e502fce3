"""The workers of a Slurm job step, for `--strategy=multi_worker` without TF_CONFIG."""

from __future__ import annotations

import os

import tensorflow as tf

from official.xlnet.errors import ConfigError

# Jobs that share a node need ports of their own: FIRST_PORT + job number % NUM_PORTS + local task.
FIRST_PORT, NUM_PORTS = 20000, 10000


def is_slurm_step() -> bool:
    """Whether `srun` started this process and no TF_CONFIG says otherwise."""
    return "SLURM_STEP_NODELIST" in os.environ and "TF_CONFIG" not in os.environ


def slurm_cluster(num_gpus: int) -> tf.distribute.cluster_resolver.ClusterResolver:
    """Returns the cluster of all tasks of this Slurm job step; each task is a worker.

    Every task uses the GPUs that Slurm lets it see.

    Args:
      num_gpus: number of GPUs that this process sees.

    Returns:
      The cluster resolver, for `tf.distribute.MultiWorkerMirroredStrategy`.

    Raises:
      ConfigError: a variable that `srun` sets is missing, or they contradict each other.
    """
    try:
        tasks = os.environ["SLURM_STEP_NUM_TASKS"]
        port = FIRST_PORT + int(os.environ["SLURM_JOB_ID"]) % NUM_PORTS
        # The resolver cannot express tasks without GPUs, and would set CUDA_VISIBLE_DEVICES, as
        # Slurm has done already. One imaginary GPU for each task keeps it from both.
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            port_base=port, gpus_per_node=int(tasks), gpus_per_task=1, auto_set_gpu=False
        )
        cluster = resolver.cluster_spec()
        # Not the rank: the resolver sorts nodes by name, where n10 precedes n2.
        local = port + int(os.environ["SLURM_LOCALID"])
        address = f"{os.environ['SLURMD_NODENAME']}:{local}"
        index = cluster.as_dict()["worker"].index(address)
    except KeyError as error:
        raise ConfigError(
            f"strategy: multi_worker expected the environment of srun, got none of {error}"
        ) from None
    except (RuntimeError, ValueError) as error:
        raise ConfigError(f"strategy: multi_worker cannot use this Slurm step: {error}") from None
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster,
        task_type="worker",
        task_id=index,
        num_accelerators={"GPU": num_gpus},
        rpc_layer="grpc",
    )
