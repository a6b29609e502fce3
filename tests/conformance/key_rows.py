"""The keys of the configuration, and for each a second value with the function of its effect.

The keys are those of the sections, of the tasks and of the extensions, so that a new key is tested
before its author writes a line. `EFFECTS` has a row for each.
"""

import dataclasses
import inspect
import itertools
import shlex

from official.xlnet.configs.base import SETTINGS
from official.xlnet.configs.experiment import XLNetConfig
from tests.helpers.corpora import recipe
from tests.helpers.package.of_projects import rows
from tests.helpers.tiny import CONFIG

SECTIONS = {field.name: field.default_factory for field in dataclasses.fields(XLNetConfig)}


def own_keys(section):
    """Names of the keys that a class declares."""
    return [
        f.name for f in dataclasses.fields(section) if f.name in inspect.get_annotations(section)
    ]


# {"section.key": the class that declares it}
KEYS = {
    f"{section.section}.{key}": section
    for section in dict.fromkeys([*SECTIONS.values(), *map(SETTINGS.__getitem__, SETTINGS.names())])
    for key in own_keys(section)
}


_SMALL = CONFIG | {"model": CONFIG["model"] | {"num_layers": 1}}
_RUN = recipe(num_steps=2, checkpoint_steps=1, warmup_steps=0)
TASK = {
    "model": _SMALL["model"] | {"vocab_size": 211, "mem_len": 0},
    "training": {"batch_size": 4, "num_steps": 4, "warmup_steps": 0, "checkpoint_steps": 2},
    "task": {"max_length": 23, "num_buckets": 1},
}
_TEXTS = "task.name=classification task.text_columns=[text]"
_TARGET = (
    "task.name=regression task.text_columns=[text] task.target_means=[0] task.target_scales=[1]"
)

# (function of `effects`, configuration, settings of all rows, rows): in each row there is a
# second value of a key, and what else it needs.
EFFECTS = [
    (
        "updates",
        {"training": {"num_steps": 6, "warmup_steps": 2}},
        "",
        """
        training.num_steps=7
        training.learning_rate=0.01
        training.warmup_steps=1
        training.end_learning_rate=0.01
        training.decay_power=2
        training.schedule=cosine
        training.cooldown_share=0.9 training.schedule=constant_with_cooldown
        training.cooldown=sqrt training.cooldown_share=0.9 training.schedule=constant_with_cooldown
        training.optimizer=lamb
        training.weight_decay=0.3
        training.adam_beta_1=0.5
        training.adam_beta_2=0.5
        training.adam_epsilon=0.1
        training.muon_scale=0.5 training.optimizer=muon
        training.clip_norm=0.1
        training.layer_decay=0.5
        training.decay_embedding=false training.layer_decay=0.5
        """,
    ),
    (
        "draws",
        _SMALL,
        "",
        """
        data.num_predict=3
        data.target_ratio=4
        data.target_unit=word
        data.max_span=2
        objective.kind=causal
        objective.target_draws=1
        objective.left_to_right_share=1.0
        objective.mask_share=0.3 objective.kind=denoising
        objective.random_share=0.2 objective.kind=denoising
        """,
    ),
    (
        "step",
        _SMALL,
        "",
        """
        model.dropatt=0.3 model.dropout=0.3
        model.vocab_size=59
        model.embedding_rows=64
        model.num_layers=2
        model.d_model=26
        model.num_heads=11
        model.d_inner=31
        model.activation=relu
        model.untie_r=false
        model.attention_type=uni
        model.segments=false
        model.clamp_len=3
        model.mem_len=3
        model.dropout=0.3
        model.activation_dropout=0.3
        model.init_std=0.1
        model.attention_init=neighbors
        model.recompute=block
        training.batch_size=6
        training.freeze_embeddings=true
        training.freeze_layers=1
        training.freeze_network=true
        training.accumulate_steps=2
        training.parallel_slices=2
        training.precision=mixed_bfloat16
        training.seed=1
        """,
    ),
    (
        "records",
        recipe(),
        "",
        """
        data.seq_len=31
        data.reuse_len=7
        data.num_lanes=4
        data.bidirectional=false
        data.heldout_fraction=0.5
        data.lowercase=true
        data.keep_accents=true
        data.max_unknown=0.01
        data.seed=1
        """,
    ),
    ("reading", recipe(), "", "data.phrases=['the water']"),
    (
        "run",
        _RUN,
        "",
        """
        training.products=bfloat16
        training.jit_compile=true
        training.steps_per_execution=2
        training.checkpoint_steps=5
        training.keep_checkpoints=1
        training.checkpoint_memory=false
        training.evaluation_steps=1
        training.on_bad_step=skip training.learning_rate=1e30
        training.json_log=true training.evaluation_steps=1
        """,
    ),
    ("devices", {}, "", "training.release_memory=true"),
    (
        "units",
        TASK,
        _TEXTS,
        """
        task.columns=[a,b,label,d,e] task.text_columns=[a]
        task.text_columns=[other]
        task.label_column=kind
        task.labels=[good,bad]
        task.group_column=group
        task.max_length=13
        task.truncation_side=left
        task.num_buckets=2
        task.long_texts=windows
        task.window_stride=7 task.long_texts=windows
        task.max_windows=2 task.long_texts=windows
        task.class_weights=balanced
        task.both_orders=true task.text_columns=[text,other]
        task.label_separator=; task.name=multi_label
        """,
    ),
    (
        "units",
        TASK,
        "",
        """
        task.num_choices=5 task.name=multiple_choice
        task.query_length=2 task.name=question_answering
        task.num_candidates=3 task.name=ranking
        """,
    ),
    (
        "fine_tuning",
        TASK,
        _TEXTS,
        """
        task.name=regression
        task.summary=mean
        task.metric=macro_f1
        task.freeze_encoder=true
        task.pooling=max task.long_texts=windows
        task.pooled_segments=all task.long_texts=memory model.mem_len=23
        task.label_smoothing=0.2
        """,
    ),
    (
        "fine_tuning",
        TASK,
        "",
        f"""
        task.target_means=[1] {_TARGET}
        task.target_scales=[2] {_TARGET}
        task.cutoff=2 task.name=ranking
        task.gain=linear task.name=ranking
        task.highest_grade=9 task.name=ranking
        task.scoring=summary task.name=ranking
        task.answer_length=1 task.name=question_answering
        task.start_n_top=2 task.name=question_answering
        task.end_n_top=2 task.name=question_answering
        task.n_best=2 task.name=question_answering
        task.null_threshold=-9 task.name=question_answering
        """,
    ),
    (
        "finetuned",
        TASK,
        f"{_TEXTS} training.num_steps=6 training.learning_rate=1e-9",
        """
        task.epochs=1
        task.patience=1
        """,
    ),
    ("finetuned", TASK, _TEXTS, "training.lora_rank=2"),
    ("predicted", TASK, "", "task.label_type=int"),
    ("variables", TASK, "task.name=classification task.labels=[a,b]", "task.scope=mnli"),
]
_BASES = {"draws": _SMALL, "step": _SMALL, "units": TASK, "fine_tuning": TASK}
EFFECTS += [(function, _BASES[function], "", row) for function, row in rows("EFFECTS")]


def rows_of(function, base, context, text):
    """Yields (key, (function, configuration, second value, other settings)) of each row."""
    for row in text.strip().splitlines():
        change, *others = shlex.split(row)
        yield change.partition("=")[0], (function, base, change, *shlex.split(context), *others)


ROWS = dict(itertools.chain.from_iterable(rows_of(*each) for each in EFFECTS))
