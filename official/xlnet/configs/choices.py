"""Names to choose from in flags, known without importing what they name.

`xlnet VERB --help` lists them at once, since the modules that do the work load TensorFlow.
"""

CHECKPOINT_FORMS = ("xlnet", "hf", "tf1")
STRATEGIES = ("one_device", "mirrored", "multi_worker", "tpu")
SCORING_ORDERS = ("left_to_right", "random", "pseudo")
SERVED_HEADS = ("task", "encoder", "lm")
WEIGHT_STORAGE = ("float32", "bfloat16", "float16", "int8")
