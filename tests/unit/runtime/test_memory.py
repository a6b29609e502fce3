"""Sizes against the machine: parameters by formula, and one sentence where they do not fit."""

from unittest import mock

import pytest
import tensorflow as tf

from official.xlnet.checkpoints.model_directory import load_encoder, load_pretrainer
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.model import ModelConfig
from official.xlnet.inference.task_prediction import load_task
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.runtime import memory
from official.xlnet.training import finetuning, pretraining
from tests.helpers.compare import assert_refused
from tests.helpers.tiny import tiny_config


@pytest.mark.parametrize("changes", [{}, {"untie_r": False}, {"num_layers": 3, "d_inner": 31}])
def test_the_number_of_parameters_is_that_of_the_encoder(changes):
    encoder = XLNetEncoder(tiny_config(**changes))
    encoder.build()
    assert encoder.config.model.num_parameters == encoder.count_params()


@pytest.mark.parametrize(
    "sizes",
    [{"d_inner": 10**9}, {"vocab_size": 2**31 - 1}, {"d_model": 2**21, "num_heads": 2**20}],
)
def test_a_model_that_no_machine_holds_is_a_sentence(sizes):
    assert_refused(
        r"parameters: expected at least [\d,.]+ GB, got",
        memory.require_memory,
        ModelConfig(**{"vocab_size": 101, **sizes}),
    )


@pytest.mark.parametrize(
    "begin",
    [
        load_encoder,
        load_pretrainer,
        load_task,
        lambda path: pretraining.pretrain(XLNetConfig.load(path), "data", path),
        lambda path: finetuning.run_finetuning(
            XLNetConfig.load(path), [], [], path, finetuning.Start(tf.distribute.get_strategy())
        ),
    ],
)
def test_functions_ask_for_memory_before_they_create_a_model(begin, tmp_path, monkeypatch):
    tiny_config(**{"task.name": "regression"}).save(str(tmp_path))
    monkeypatch.setattr(pretraining, "Records", mock.Mock())
    monkeypatch.setattr(memory, "machine_bytes", lambda: 1000)
    assert_refused(r"memory: [\d,]+ parameters", begin, str(tmp_path))


@pytest.mark.parametrize(
    ("rows", "tokens", "training", "numbers"),
    [
        (0, 0, False, 0),
        (3, 13, False, 2 * 3 * 7 * 22 + 3 * 13 * 22 + 3 * 2 * 13 * 20),
        (3, 13, True, 2 * 3 * 7 * 22 + 2 * 3 * 13 * 22 + 3 * 2 * 13 * 20),
    ],
)
def test_batches_count(rows, tokens, training, numbers, monkeypatch):
    """B 3, T 13, M 7, D 22, N 2, L 2: by hand."""
    model = tiny_config().model
    needed = 4 * (numbers + (4 if training else 1) * model.num_parameters)
    monkeypatch.setattr(memory, "machine_bytes", lambda: needed)
    memory.require_memory(model, rows, tokens, training)
    monkeypatch.setattr(memory, "machine_bytes", lambda: needed - 1)
    assert_refused(
        "use a smaller model or batch", memory.require_memory, model, rows, tokens, training
    )


def test_the_machine_has_memory_and_ulimit_counts(monkeypatch):
    there = memory.machine_bytes()
    assert there > 1 << 28
    monkeypatch.setattr(memory.resource, "getrlimit", lambda _: (there // 2, there))
    assert memory.machine_bytes() == there // 2


@pytest.mark.parametrize(
    ("line", "limit_file"),
    [
        ("4:memory:/a/b", "memory/a/b/memory.limit_in_bytes"),
        ("4:memory:/a/b", "memory/a/memory.limit_in_bytes"),
        ("4:memory:/a/b", "memory/memory.limit_in_bytes"),
        ("0::/system.slice/x:y.scope", "system.slice/x:y.scope/memory.max"),
        ("0::/system.slice/x.scope", "system.slice/memory.max"),
        ("0::/", "memory.max"),
    ],
)
def test_limits_of_a_container_and_of_the_groups_around_it(line, limit_file, tmp_path, monkeypatch):
    limit = memory.machine_bytes() // 3
    (tmp_path / "cgroup").write_text(f"3:cpuset:/other\n{line}\n")
    for path, text in {"memory.max": "max", limit_file: str(limit)}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text + "\n")
    monkeypatch.setattr(memory, "_CGROUPS", str(tmp_path / "cgroup"))
    roots = {
        key: (str(tmp_path) + root.removeprefix("/sys/fs/cgroup"), name)
        for key, (root, name) in memory._CGROUP_LIMITS.items()
    }
    monkeypatch.setattr(memory, "_CGROUP_LIMITS", roots)
    assert memory.machine_bytes() == limit
