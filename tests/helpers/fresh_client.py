"""Runs an exported model with tensorflow and tensorflow-text alone; started by tests.

    python fresh_client.py VERSION_DIR BATCHES.json OUTPUTS.npz

BATCHES.json is a list of {input: [values]}; OUTPUTS.npz gets "NUMBER/OUTPUT" arrays.
"""

import json
import sys

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401

signature = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
with open(sys.argv[2]) as file:
    batches = json.load(file)
arrays = {}
for number, batch in enumerate(batches):
    outputs = signature(**{name: tf.constant(value) for name, value in batch.items()})
    numbers = {name: x.numpy() for name, x in outputs.items() if x.dtype != tf.string}
    arrays |= {f"{number}/{name}": x for name, x in numbers.items()}
ours = ("official", "data_prep")
wrong = [name for name in sys.modules if name.split(".")[0] in ours]
assert not wrong, wrong
np.savez(sys.argv[3], **arrays)
