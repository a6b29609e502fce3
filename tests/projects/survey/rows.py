"""Rows in tables of the core's tests, see `tests/helpers/package/of_projects.py`."""

from official.xlnet.configs.registry import TASKS

_BERT = "model.network=bert model.mem_len=0 objective.kind=denoising data.bidirectional=false"
_ADAPTIVE = "model.depth=adaptive model.num_layers=2"
_TEXT = "task.name=classification task.text_columns=[text]"
_PAIRS = "task.name=classification task.text_columns=[text,other]"

EFFECTS = [
    ("draws", "objective.input_format=full_sentences objective.kind=denoising"),
    ("step", _BERT),
    ("step", "model.depth=shared model.num_layers=2"),
    ("step", f"model.max_positions=29 {_BERT}"),
    ("step", f"model.num_segments=2 {_BERT}"),
    ("step", f"model.step_encoding=false {_ADAPTIVE}"),
    ("step", f"model.halting_threshold=0.3 {_ADAPTIVE}"),
    ("step", f"model.ponder_weight=1 {_ADAPTIVE}"),
    ("step", "objective.auxiliary=[capitalization]"),
    ("step", "objective.auxiliary_steps=[5] objective.auxiliary=[capitalization]"),
    ("step", "objective.auxiliary_weights=[3] objective.auxiliary=[capitalization]"),
    ("step", "objective.next_sentence=true"),
    ("fine_tuning", f"task.lm_weight=0.5 {_TEXT}"),
    ("fine_tuning", f"task.answer_module=san {_PAIRS}"),
    ("fine_tuning", f"task.answer_steps=3 task.answer_module=san {_PAIRS}"),
    ("fine_tuning", f"task.answer_dropout=0.5 task.answer_module=san {_PAIRS}"),
]
MISSPELT = ["objective.auxiliary=[capitalisation]", "model.network=brt"]
UNREAD = [
    ("task.answer_module=san", "task.name=regression", "task.name=classification"),
    ("task.answer_steps=3", "task.answer_module=summary", "task.answer_module=san"),
    ("model.ponder_weight=0.5", "model.depth=shared", "model.depth=adaptive"),
]
CHOOSES_ANOTHER_CLASS = [("model", "network", "bert", r"config\.set\('model\.network=bert'\)")]
KEYS_OF_TASKS = {
    "answer_steps": ({"classification", "multi_label", "regression"}, 5, 3),
    "lm_weight": ({*TASKS.names()}, 0.0, 0.5),
}
CAUSAL_NETWORKS = [{"attention_type": "uni", "network": "gpt2", "mem_len": 0, "d_model": 24}]
DENOISING_NETWORKS = [{"network": "bert", "mem_len": 0, "max_positions": 23, "d_model": 24}]
ADAPTED_NETWORKS = [
    {"network": "bert", "mem_len": 0, "kind": "denoising", "bidirectional": "false"}
]
ADAPTED_DEPTHS = {"shared": {"depth": "shared"}}
# Runs of version 0.1 with this objective resume, so nothing else may be expected of them.
ADDED_VARIABLES = [
    ({"objective.next_sentence": True}, {"next_sentence/kernel": [22], "next_sentence/bias": []})
]
EXAMPLES_IN_DOCSTRINGS = ["projects.survey.bert", "projects.survey.universal"]
KINDS_WITH_BASELINES = ["classification"]
