"""A recipe for several workers, and the losses of its run on one device."""

import pytest

from official.xlnet.api.pretrain import pretrain
from official.xlnet.configs.experiment import XLNetConfig
from tests.helpers.replicas.clusters import recipe_of_replicas
from tests.helpers.runs import losses_of


@pytest.fixture(scope="module")
def recipe(world, tmp_path_factory, request):
    """A recipe of as many steps as the module's `STEPS`."""
    settings = ["num_lanes=12", "batch_size=12", f"num_steps={request.module.STEPS}"]
    return recipe_of_replicas(world, tmp_path_factory, settings)


@pytest.fixture(scope="module")
def undisturbed(recipe, tmp_path_factory):
    """The losses of a run on one device."""
    output = str(tmp_path_factory.mktemp("undisturbed"))
    pretrain(XLNetConfig.load(recipe), f"{recipe}/data", output)
    return losses_of(output)
