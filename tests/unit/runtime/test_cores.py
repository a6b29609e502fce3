"""How many micro-batches run in parallel."""

import pytest

from official.xlnet.configs.training import TrainingConfig
from official.xlnet.runtime import cores


@pytest.mark.parametrize(
    ("num_cores", "num_rows", "expected"),
    [
        (1, 16, 1),
        (2, 16, 2),
        (3, 16, 2),
        (3, 9, 3),
        (64, 16, 4),
        (64, 7, 1),
        (4, 2, 2),
        (2, None, 1),
    ],
)
def test_automatic_slices(monkeypatch, num_cores, num_rows, expected):
    monkeypatch.setattr(cores, "num_cores", lambda: num_cores)
    training = TrainingConfig(parallel_slices=0)
    assert cores.num_parallel_slices(training, num_rows, False) == expected


def test_one_slice_on_an_accelerator_unless_told(monkeypatch):
    monkeypatch.setattr(cores, "num_cores", lambda: 2)
    assert cores.num_parallel_slices(TrainingConfig(parallel_slices=0), 16, True) == 1
    assert cores.num_parallel_slices(TrainingConfig(parallel_slices=2), 16, True) == 2
