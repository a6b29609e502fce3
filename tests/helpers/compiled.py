"""A tiny pretrainer with its optimizer, and what it carries from step to step."""

from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.training.optimization import create_optimizer
from tests.helpers.tiny import randomize, tiny_config


def make_model(is_random=True, jit_compile=None, **changes):
    """A compiled model; `is_random` gives large random values to every variable."""
    keras.utils.set_random_seed(11)
    model = XLNetPretrainer(tiny_config(**changes))
    if is_random:
        randomize(model.trainable_variables, seed=3, scale=0.1)
    optimizer = create_optimizer(model.config.training, model.config.model.num_layers)
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, jit_compile=jit_compile)
    return model


def state(model):
    """All that a run carries from step to step, but for the optimizer's moments."""
    return [variable.numpy() for variable in [*model.trainable_variables, model.memory.states]]
