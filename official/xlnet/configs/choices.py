"""Allowed values and defaults of command-line flags, importable without TensorFlow.

The modules that implement them load TensorFlow; `xlnet VERB --help` must not.
"""

CHECKPOINT_FORMS = ("xlnet", "hf", "tf1")
CLUSTER_TIMEOUT = 1800.0  # Seconds to wait for the other workers of a cluster.
# How positions of a step are chosen: by their distributions, at random, or by the drawn tokens.
SCORED_SELECTIONS = ("confidence", "margin", "entropy")
STEP_SELECTIONS = (*SCORED_SELECTIONS, "random", "drawn")
GIVEN_SIDES = ("left", "right", "both")
PUNCTUATION = ("attached", "alone")
UNITS = ("nats", "bits")
SERVED_HEADS = ("task", "encoder", "lm")
POOLINGS = ("cls", "mean", "text_mean", "none", "words")  # Of the vectors of a text.
PRODUCTS = ("float32", "bfloat16")
MAX_CHARACTERS, MAX_WINDOWS = 200_000, 512  # Of a text in a request to an exported model.
WEIGHT_STORAGE = ("float32", "bfloat16", "float16", "int8")
