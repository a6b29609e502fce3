"""Two workers with a memory in bfloat16 save it, and go on from it, as one device does."""

import numpy as np
import pytest

from tests.helpers.replicas.clusters import finish, recipe_of_replicas, start_cluster
from tests.helpers.runs import losses_of
from tests.helpers.world import command

pytestmark = pytest.mark.slow

SETTINGS = ["num_lanes=8", "batch_size=8"]


def test_a_memory_in_bfloat16_is_saved_and_restored(world, tmp_path, tmp_path_factory):
    recipe = recipe_of_replicas(world, tmp_path_factory, SETTINGS)
    arguments = ["pretrain", f"--config={recipe}", f"--data={recipe}/data"]
    arguments += ["--set=precision=mixed_bfloat16", "--set=learning_rate=1e-4"]
    for steps in (4, 6):
        last = [f"--output={tmp_path}/workers", f"--steps={steps}"]
        finish(start_cluster("multi_worker", [*arguments, *last]))
    command(*arguments, output=tmp_path / "alone", steps=6)
    losses = [losses_of(tmp_path / name) for name in ("workers", "alone")]
    assert len(losses[0]) == 6
    np.testing.assert_allclose(*losses, rtol=0, atol=0.02)
