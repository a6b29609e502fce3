"""Processes of distributed runs on this machine."""

import atexit
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import STRATEGIES
from official.xlnet.runtime.history import HISTORY_FILE
from tests.helpers.world import command


def strategies_of_replicas():
    """Names of the strategies that can have several replicas on this machine."""
    return sorted({*STRATEGIES.names()} - {"one_device", "tpu"})


def start_cluster(
    strategy, arguments, replicas=2, program="official.xlnet.cli", last=(), last_env=()
):
    """Starts the processes of an `xlnet` command on two replicas.

    Args:
      strategy: `mirrored`, on logical CPU devices of one process; or `multi_worker`, on one
        process for each replica.
      arguments: verb and flags, without `--strategy`.
      replicas: number of replicas.
      program: module that is run with them.
      last: flags of the last worker alone, in place of those of the same name; `--set` adds.
      last_env: environment variables of the last worker alone, as pairs.

    Returns:
      The processes.
    """
    words = [sys.executable, "-m", program, *arguments, f"--strategy={strategy}"]
    environments = [dict(os.environ)]
    if strategy == "mirrored":
        words.append(f"--cpu_devices={replicas}")
    else:
        workers = [f"127.0.0.1:{port}" for port in free_ports(replicas)]
        clusters = [
            {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
            for index in range(replicas)
        ]
        environments = [{**os.environ, "TF_CONFIG": json.dumps(each)} for each in clusters]
    environments[-1].update(last_env)
    replaced = {flag.partition("=")[0] for flag in last} - {"--set"}
    words_of_last = [word for word in words if word.partition("=")[0] not in replaced]
    commands = [*[words] * (len(environments) - 1), [*words_of_last, *last]]
    return [start_process(*each) for each in zip(commands, environments, strict=True)]


def recipe_of_replicas(world, tmp_path_factory, settings):
    """A directory with a configuration whose lanes replicas can share, and `data`."""
    path = str(tmp_path_factory.mktemp("recipe"))
    settings = [*settings, "checkpoint_steps=4", "dropout=0", "dropatt=0"]
    XLNetConfig.load(world.config, settings).save(path)
    flags = {"input": world.text, "vocab": world.vocab, "config": path}
    command("prepare", "--num_workers=1", output=f"{path}/data", **flags)
    return path


def start_process(words, environment):
    """Starts a process whose output `finish` reads."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, env=environment, stdout=pipe, stderr=pipe, text=True)
    atexit.register(process.kill)  # A failed test leaves workers that wait for the others.
    return process


def finish(processes, status=0):
    """Waits for processes that end with `status`; returns the JSON line of the first, if any."""
    result = None
    for number, process in enumerate(processes):
        out, err = process.communicate(timeout=500)
        assert process.returncode == status, err
        if number == 0 and out:
            result = json.loads(out.splitlines()[-1])
    return result


def wait_for_step(process, model_dir, step):
    """Waits until the history of a run has a step, or the process has ended."""
    history = pathlib.Path(model_dir, HISTORY_FILE)
    while process.poll() is None:
        if history.exists() and history.read_bytes().count(b"\n") >= step:
            return
        time.sleep(0.005)


def free_ports(number):
    """Ports that nothing listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextlib.contextmanager
def dask_cluster(directory, num_workers=2):
    """Yields the scheduler file and the worker processes of a Dask cluster on this machine."""
    dask = os.path.join(os.path.dirname(sys.executable), "dask")
    program = [dask] if os.path.exists(dask) else [sys.executable, "-m", "dask"]
    address_file = directory / "scheduler.json"
    arguments = ["--host=127.0.0.1", "--port=0", f"--scheduler-file={address_file}"]
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    processes = [subprocess.Popen([*program, "scheduler", *arguments, "--no-dashboard"], **quiet)]
    try:
        while not address_file.exists():
            time.sleep(0.1)
        worker = [*program, "worker", f"--scheduler-file={address_file}", "--nthreads=1"]
        processes += [
            subprocess.Popen([*worker, "--no-nanny", "--no-dashboard"], **quiet)
            for _ in range(num_workers)
        ]
        yield address_file, processes[1:]
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()
