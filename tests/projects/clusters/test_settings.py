"""Settings that change variables or their sums: two workers take the steps of one device."""

import itertools

import numpy as np
import pytest

from official.xlnet.configs.registry import OBJECTIVES, OPTIMIZERS
from tests.helpers.replicas.clusters import finish, recipe_of_replicas, start_cluster
from tests.helpers.runs import losses_of
from tests.helpers.world import command

pytestmark = pytest.mark.nightly

STEPS = 5
ATOL, ATOL_OF_BFLOAT16 = 1e-4, 0.02
BFLOAT16 = "precision=mixed_bfloat16"
OTHERS = ["accumulate_steps=2", "mem_len=0", "clip_norm=0.1", BFLOAT16]
# Each objective, each optimizer and each of the others at least once.
COMPANIES = list(
    itertools.islice(
        zip(
            itertools.cycle(OBJECTIVES.names()),
            itertools.cycle(OPTIMIZERS.names()),
            itertools.cycle(OTHERS),
            strict=False,
        ),
        max(len(OBJECTIVES.names()), len(OPTIMIZERS.names()), len(OTHERS)),
    )
)


@pytest.fixture(scope="module")
def recipe(world, tmp_path_factory):
    return recipe_of_replicas(world, tmp_path_factory, ["num_lanes=8", "batch_size=8"])


@pytest.mark.parametrize(("objective", "optimizer", "other"), COMPANIES)
def test_two_workers_are_one_device(recipe, objective, optimizer, other, tmp_path):
    settings = [f"objective.kind={objective}", f"optimizer={optimizer}", other]
    flags = [f"--config={recipe}", f"--data={recipe}/data", f"--steps={STEPS}"]
    flags += [f"--set={setting}" for setting in settings]
    workers = ["pretrain", *flags, f"--output={tmp_path}/workers"]
    finish(start_cluster("multi_worker", workers))
    command("pretrain", *flags, output=tmp_path / "alone")
    losses = [losses_of(tmp_path / name) for name in ("workers", "alone")]
    assert len(losses[0]) == STEPS
    atol = ATOL_OF_BFLOAT16 if other == BFLOAT16 else ATOL
    np.testing.assert_allclose(*losses, rtol=0, atol=atol)
