"""What the survey adds to XLNet: other networks, depths, objectives and initial weights.

Each is on the hooks that any other package has (`docs/extending.md`). The core finds them by these
tables, which hold modules of this package, and imports a module when its name is asked for.
"""

# {key of the configuration: {name: the module that registers it}}
MODULES = {
    "model.network": {"bert": "bert.bert_encoder", "gpt": "bert.gpt_encoder"},
    "model.depth": {"shared": "universal.shared_depth", "adaptive": "universal.adaptive_depth"},
    "model.attention_init": {"neighbors": "neighbors"},
    "objective.auxiliary": {
        "next_sentence": "next_sentence.auxiliary",
        "capitalization": "ernie.capitalization",
        "token_document": "ernie.token_document",
    },
}

# Modules that register keys of the configuration, without TensorFlow.
SETTINGS = ("bert.settings", "universal.settings", "ernie.settings", "next_sentence.settings")

# {name in Keras' files: the module that registers the class}
KERAS_NAMES = {
    "AdaptiveDepth": "universal.adaptive_depth",
    "BertEncoder": "bert.bert_encoder",
    "GptEncoder": "bert.gpt_encoder",
    "MaskedLMHead": "bert.masked_lm_head",
    "SharedDepth": "universal.shared_depth",
}
