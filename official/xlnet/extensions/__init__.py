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
    (NETWORKS, "bert.encoders", ("bert", "gpt", "gpt2")),
    (ANSWER_MODULES, "stochastic_answer.head", ("san",)),
    (TASK_LOSSES, "language_model_loss.loss", ("language_model",)),
    (DEPTHS, "universal.depths", ("shared", "adaptive")),
    (INPUT_FORMATS, "contiguous.formats", ("full_sentences", "doc_sentences")),
    (BASELINES, "text_baselines", ("text",)),
    (ATTENTION_INITS, "neighbors", ("neighbors",)),
    (AUXILIARY, "auxiliary.objectives", ("next_sentence", "capitalization", "token_document")),
    (SEVERAL_RUNS, "several_runs.folds", ("folds",)),
    (SEVERAL_RUNS, "several_runs.runs", ("runs",)),
    (SEVERAL_RUNS, "several_runs.search", ("search",)),
):
    _registry.modules |= dict.fromkeys(_names, f"extensions.{_module}")
# Keys of the configuration, and names that have some; these modules import no TensorFlow.
SETTINGS.modules |= {
    "model.network=bert": "extensions.bert.settings",
    "model.network=gpt": "extensions.bert.settings",
    "model.network=gpt2": "extensions.bert.settings",
    "model.max_positions": "extensions.bert.settings",
    "model.num_segments": "extensions.bert.settings",
    "model.depth=shared": "extensions.universal.settings",
    "model.depth=adaptive": "extensions.universal.settings",
    "model.step_encoding": "extensions.universal.settings",
    "model.halting_threshold": "extensions.universal.settings",
    "model.ponder_weight": "extensions.universal.settings",
    "objective.auxiliary=capitalization": "extensions.auxiliary.settings",
    "objective.auxiliary=token_document": "extensions.auxiliary.settings",
    "objective.auxiliary=next_sentence": "extensions.auxiliary.settings",
    "objective.input_format=full_sentences": "extensions.contiguous.settings",
    "objective.input_format=doc_sentences": "extensions.contiguous.settings",
    "task.answer_module=san": "extensions.stochastic_answer.settings",
    "task.answer_steps": "extensions.stochastic_answer.settings",
    "task.answer_dropout": "extensions.stochastic_answer.settings",
    "task.both_orders": "extensions.both_orders",
    "task.lm_weight": "extensions.language_model_loss.settings",
    "objective.next_sentence": "extensions.auxiliary.settings",
}
# Classes in Keras' files.
keras_names.MODULES |= {
    "AdaptiveDepth": "extensions.universal.depths",
    "BertEncoder": "extensions.bert.encoders",
    "Gpt2Encoder": "extensions.bert.encoders",
    "GptEncoder": "extensions.bert.encoders",
    "MaskedLMHead": "extensions.bert.encoders",
    "SharedDepth": "extensions.universal.depths",
}
