"""Additions from the survey: other networks, depths, objectives and initial weights.

Each is on the hooks that any other package has (`docs/extending.md`). This file enters their names,
with the modules that register them, which are imported when a name is first looked up, and imports
their keys of the configuration.
"""

from official.xlnet.configs.registry import (
    ANSWER_MODULES,
    ATTENTION_INITS,
    AUXILIARY,
    BASELINES,
    DEPTHS,
    INPUT_FORMATS,
    NETWORKS,
    SEVERAL_RUNS,
    TASK_LOSSES,
)
from official.xlnet.extensions import settings  # noqa: F401
from official.xlnet.modeling.ops import keras_names

# (registry, module, the names that it registers)
for _registry, _module, _names in (
    (NETWORKS, "bert", ("bert", "gpt", "gpt2")),
    (ANSWER_MODULES, "stochastic_answer", ("san",)),
    (TASK_LOSSES, "language_model_loss", ("language_model",)),
    (DEPTHS, "universal", ("shared", "adaptive")),
    (INPUT_FORMATS, "contiguous", ("full_sentences", "doc_sentences")),
    (BASELINES, "text_baselines", ("text",)),
    (ATTENTION_INITS, "neighbors", ("neighbors",)),
    (AUXILIARY, "auxiliary", ("next_sentence", "capitalization", "token_document")),
    (SEVERAL_RUNS, "several_runs.folds", ("folds",)),
    (SEVERAL_RUNS, "several_runs.runs", ("runs",)),
    (SEVERAL_RUNS, "several_runs.search", ("search",)),
):
    _registry.modules |= dict.fromkeys(_names, f"extensions.{_module}")
# Classes in Keras' files.
keras_names.MODULES |= {
    "AdaptiveDepth": "extensions.universal",
    "BertEncoder": "extensions.bert",
    "Gpt2Encoder": "extensions.bert",
    "GptEncoder": "extensions.bert",
    "MaskedLMHead": "extensions.bert",
    "SharedDepth": "extensions.universal",
}
