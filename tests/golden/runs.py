"""The golden files, and the training run whose losses one of them holds."""

import os

from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.training.optimization import create_optimizer
from tests.helpers.tiny import random_windows, randomize, tiny_config

HF_FILE = os.path.join(os.path.dirname(__file__), "hf_xlnet.npz")
LOSSES_FILE = os.path.join(os.path.dirname(__file__), "losses.json")


def training_losses(steps=5):
    """Losses of eager steps with dropout, memory, both directions, decay and clipping."""
    model = XLNetPretrainer(tiny_config(dropout=0.1, dropatt=0.2, warmup_steps=3, num_steps=10))
    randomize(model.trainable_variables, seed=5, scale=0.1)
    model.compile(create_optimizer(model.config.training, model.config.model.num_layers))
    losses = []
    for step in range(steps):
        model.reset_metrics()
        losses.append(float(model.train_step(random_windows(step))["loss"]))
    return losses
