"""What depends on the devices: whether a step is compiled, slices in parallel, precision."""

import types

import pytest
import tensorflow as tf

from official.xlnet.configs.registry import STRATEGIES, WORKERS
from official.xlnet.configs.training import TrainingConfig
from official.xlnet.files.schema import OneOfRegistry
from official.xlnet.runtime import cores, distribution
from official.xlnet.runtime.workers import Workers, workers_of
from tests.helpers.compare import assert_refused

TPU = tf.distribute.TPUStrategy.__new__(tf.distribute.TPUStrategy)
CLUSTER = tf.distribute.MultiWorkerMirroredStrategy
REPLICAS = {n: types.SimpleNamespace(num_replicas_in_sync=n) for n in (1, 2)}


@pytest.mark.parametrize(
    ("jit_compile", "gpus", "strategy", "expected"),
    [
        (None, 0, REPLICAS[1], False),
        (None, 1, REPLICAS[1], True),
        (None, 2, REPLICAS[2], False),
        (False, 1, REPLICAS[1], False),
        (True, 0, REPLICAS[1], True),
        (True, 0, REPLICAS[2], False),
        (True, 2, REPLICAS[2], True),
        (True, 0, TPU, False),  # It compiles by itself.
    ],
)
def test_a_step_is_compiled_on_one_gpu_or_where_it_is_wanted_and_works(
    jit_compile, gpus, strategy, expected, monkeypatch
):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU"] * gpus)
    assert distribution.compiles_step(jit_compile, strategy) is expected


@pytest.mark.parametrize(
    ("num_cores", "wanted", "num_rows", "has_accelerator", "expected"),
    [
        (1, 0, 16, False, 1),
        (2, 0, 16, False, 2),
        (3, 0, 16, False, 2),
        (3, 0, 9, False, 3),
        (64, 0, 16, False, 4),
        (64, 0, 7, False, 1),
        (4, 0, 2, False, 2),
        (2, 0, None, False, 1),
        (2, 0, 16, True, 1),
        (2, 2, 16, True, 2),
    ],
)
def test_slices_in_parallel(num_cores, wanted, num_rows, has_accelerator, expected, monkeypatch):
    monkeypatch.setattr(cores, "num_cores", lambda: num_cores)
    training = TrainingConfig(parallel_slices=wanted)
    assert cores.num_parallel_slices(training, num_rows, has_accelerator) == expected


def test_a_registered_strategy_is_created_and_its_errors_are_one_line():
    strategy = tf.distribute.get_strategy()

    @distribution.register_strategy("test_strategy")
    def create(timeout_seconds):
        if timeout_seconds < 5:
            raise RuntimeError("no device\nof this kind")
        return strategy

    try:
        assert OneOfRegistry(STRATEGIES).words[-2:] == ("test_strategy", "tpu")
        assert distribution.create_strategy("test_strategy", cluster_timeout=5) is strategy
        message = "^strategy: test_strategy cannot be used here: no device$"
        assert_refused(message, distribution.create_strategy, "test_strategy", cluster_timeout=4)
    finally:
        del STRATEGIES["test_strategy"]
    assert_refused("expected one of one_device", distribution.create_strategy, "test_strategy")


def test_workers_of_a_strategy_are_one_process_unless_others_are_registered(monkeypatch):
    workers = workers_of(REPLICAS[2])
    assert type(workers) is Workers
    assert workers.any(True) and not workers.any(False)
    cluster = CLUSTER.__new__(CLUSTER)
    cluster._extended = types.SimpleNamespace(_in_multi_worker_mode=lambda: True)
    monkeypatch.setattr(WORKERS, "modules", {})
    monkeypatch.delitem(WORKERS, CLUSTER.__name__, raising=False)
    assert_refused("strategy: expected a strategy of one process, or one ", workers_of, cluster)
    monkeypatch.setitem(WORKERS, CLUSTER.__name__, lambda strategy: strategy)
    assert workers_of(cluster) is cluster


def test_float16_on_a_tpu_is_an_error(monkeypatch):
    monkeypatch.setattr(distribution, "create_strategy", lambda *_: TPU)
    training = TrainingConfig(precision="mixed_bfloat16", parallel_slices=1)
    assert distribution.prepare_devices(training, "tpu") is TPU
    training.precision = "mixed_float16"
    assert_refused(
        "expected float32 or mixed_bfloat16 on a TPU", distribution.prepare_devices, training, "tpu"
    )
