"""What the survey adds to XLNet: other networks, depths, objectives and initial weights.

Each is on the hooks that any other package has (`docs/extending.md`). This file enters their names,
with the modules that register them, which are imported when a name is first looked up.
"""

from official.xlnet.configs.registry import (
    ANSWER_MODULES,
    ATTENTION_INITS,
    AUXILIARY,
    BASELINES,
    DEPTHS,
    INPUT_FORMATS,
    NETWORKS,
    SETTINGS,
    SEVERAL_RUNS,
    TASK_LOSSES,
)
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
# Keys of the configuration, and names that have some.
SETTINGS.modules |= dict.fromkeys(
    (
        "model.network=bert",
        "model.network=gpt",
        "model.network=gpt2",
        "model.max_positions",
        "model.num_segments",
        "model.depth=shared",
        "model.depth=adaptive",
        "model.step_encoding",
        "model.halting_threshold",
        "model.ponder_weight",
        "objective.auxiliary=capitalization",
        "objective.auxiliary=token_document",
        "objective.auxiliary=next_sentence",
        "objective.input_format=full_sentences",
        "objective.input_format=doc_sentences",
        "objective.next_sentence",
        "task.answer_module=san",
        "task.answer_steps",
        "task.answer_dropout",
        "task.both_orders",
        "task.lm_weight",
    ),
    "extensions.settings",
)
# Classes in Keras' files.
keras_names.MODULES |= {
    "AdaptiveDepth": "extensions.universal",
    "BertEncoder": "extensions.bert",
    "Gpt2Encoder": "extensions.bert",
    "GptEncoder": "extensions.bert",
    "MaskedLMHead": "extensions.bert",
    "SharedDepth": "extensions.universal",
}
