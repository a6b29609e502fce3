"""Projects: parts beside the core, each a folder here on the hooks that any package has.

The core imports no project, and a project imports no other. The table below has a line for each:
which names its modules register. A module is imported when one of its names is first looked up.
Recipes are in the folder `recipes` of a project, and are found by their names.

To remove a project, delete its folder, its tests (`tests/projects/<name>`) and its line.
"""

from __future__ import annotations

import os

from official.xlnet.configs.registry import (
    ANSWER_MODULES,
    AUXILIARY,
    BASELINES,
    BREAKDOWNS,
    DECODERS,
    DEPTHS,
    FILE_READERS,
    FOLDER_READERS,
    HEADS,
    INPUT_FORMATS,
    LABEL_UNITS,
    NETWORKS,
    OBJECTIVES,
    ORDER_ESTIMATES,
    ORDERS,
    PRETRAINING_PAGES,
    PUBLIC_NAMES,
    RECIPE_FOLDERS,
    REMOVED_VERBS,
    ROW_FILES,
    RUN_FILES,
    SERVICES,
    SETTINGS,
    STRATEGIES,
    TASK_LOSSES,
    TASK_PAGES,
    TASKS,
    TEXT_FILES,
    TEXT_FORMATS,
    TEXT_ROW_FORMATS,
    VERBS,
    WORKERS,
    Registry,
)
from official.xlnet.files.former_options import FORMER_OPTIONS
from official.xlnet.files.urls import FILE_SYSTEMS, LOCAL_COPIES, OTHER_SCHEMES
from official.xlnet.modeling.ops.keras_names import CLASSES

# {project: (registry, module of the project, the names that it registers there)}
PROJECTS: dict[str, tuple[tuple[Registry, str, tuple[str, ...]], ...]] = {
    "any_order": (
        (ORDERS, "orders", ("right_to_left", "inside_out", "confidence", "entropy")),
        (ORDER_ESTIMATES, "mixtures", ("mixture",)),
        (OBJECTIVES, "absorbing_diffusion", ("absorbing_diffusion",)),
        (SETTINGS, "settings", ("objective.kind=absorbing_diffusion",)),
        (DECODERS, "stepwise", ("steps",)),
        (BREAKDOWNS, "context_losses", ("context",)),
        (
            VERBS,
            "verbs",
            ("words", "pairs", "norms", "consistency", "candidates", "unmask"),
        ),
        (
            FORMER_OPTIONS,
            "verbs",
            (
                "score.words",
                "score.pairs",
                "score.norms",
                "score.consistency",
                "generate.candidates",
                "generate.choices",
                "generate.steps",
                "generate.select",
                "generate.remask",
            ),
        ),
        (PUBLIC_NAMES, "candidates", ("blank_candidates",)),
        (PUBLIC_NAMES, "consistency", ("consistency",)),
        (PUBLIC_NAMES, "words", ("words_of",)),
    ),
    "buckets": (
        (FILE_SYSTEMS, "file_system", (OTHER_SCHEMES,)),
        (LOCAL_COPIES, "staging", ("local_paths", "local_copy", "with_urls")),
    ),
    "clusters": (
        (STRATEGIES, "multi_worker", ("multi_worker",)),
        (WORKERS, "workers", ("CollectiveAllReduceStrategy",)),
    ),
    "garden": ((CLASSES, "bert_style_encoder", ("BertStyleLayer",)),),
    "pictures": (
        (PRETRAINING_PAGES, "pretraining_page", ("report.html",)),
        (TASK_PAGES, "task_page", ("report.html",)),
        (VERBS, "inspect_verbs", ("inspect attention", "inspect records")),
        (REMOVED_VERBS, "inspect_verbs", ("inspect runs", "inspect steps")),
        (PUBLIC_NAMES, "attention_maps", ("attention_maps",)),
        (PUBLIC_NAMES, "masks", ("make_masks",)),
    ),
    "rescoring": (
        (TEXT_ROW_FORMATS, "formats", ("kaldi", "nbest")),
        (VERBS, "verbs", ("rescore",)),
        (FORMER_OPTIONS, "verbs", ("score.format", "score.weights")),
    ),
    "search": (
        (FOLDER_READERS, "folders", ("ranking", "ranking/qrels")),
        (SETTINGS, "settings", ("task.rerank_depth",)),
    ),
    "sequences": (
        (LABEL_UNITS, "letters", ("letter",)),
        (TASKS, "number_task", ("token_regression",)),
        (FILE_READERS, "number_reader", ("token_regression",)),
        (HEADS, "number_graph", ("token_regression",)),
        (SERVICES, "number_service", ("token_regression",)),
        (SETTINGS, "number_settings", ("task.name=token_regression",)),
        (TEXT_FORMATS, "fasta", ("fasta",)),
        (TEXT_FILES, "fasta", ("*.fasta", "*.fa", "*.faa", "*.fna", ">*")),
        (ROW_FILES, "fasta_rows", ("*.fasta", "*.fa", "*.faa", "*.fna", ">*")),
    ),
    "survey": (
        (NETWORKS, "bert", ("bert", "gpt", "gpt2")),
        (CLASSES, "bert", ("BertEncoder", "GptEncoder", "Gpt2Encoder", "MaskedLMHead")),
        (DEPTHS, "universal", ("shared", "adaptive")),
        (CLASSES, "universal", ("SharedDepth", "AdaptiveDepth")),
        (INPUT_FORMATS, "contiguous", ("full_sentences", "doc_sentences")),
        (AUXILIARY, "auxiliary", ("next_sentence", "capitalization", "token_document")),
        (ANSWER_MODULES, "stochastic_answer", ("san",)),
        (TASK_LOSSES, "language_model_loss", ("language_model",)),
        (BASELINES, "text_baselines", ("text",)),
        (
            SETTINGS,
            "settings",
            (
                "model.max_positions",
                "model.num_segments",
                "model.network=bert",
                "model.network=gpt",
                "model.network=gpt2",
                "model.step_encoding",
                "model.halting_threshold",
                "model.ponder_weight",
                "model.depth=shared",
                "model.depth=adaptive",
                "objective.auxiliary=capitalization",
                "objective.auxiliary=token_document",
                "objective.input_format=full_sentences",
                "objective.input_format=doc_sentences",
                "task.answer_steps",
                "task.answer_dropout",
                "task.answer_module=san",
            ),
        ),
    ),
    "multitask": (
        (TASKS, "task", ("multitask",)),
        (HEADS, "graph", ("multitask",)),
        (SERVICES, "service", ("multitask",)),
        (
            SETTINGS,
            "settings",
            ("task.name=multitask", "task.subtasks", "task.regressions", "task.rankings"),
        ),
    ),
    "trials": (
        (VERBS, "verbs", ("cross_validate", "finetune_repeatedly", "search_settings")),
        (PUBLIC_NAMES, "verbs", ("cross_validate", "finetune_repeatedly", "search_settings")),
        (
            FORMER_OPTIONS,
            "verbs",
            ("finetune.folds", "finetune.runs", "finetune.num_runs", "finetune.search"),
        ),
        (RUN_FILES, "runs_file", ("folds.json", "runs.json", "search.json")),
    ),
}


def _enter() -> None:
    for project, parts in PROJECTS.items():
        RECIPE_FOLDERS.append(os.path.join(os.path.dirname(__file__), project, "recipes"))
        for registry, module, names in parts:
            registry.modules |= dict.fromkeys(names, f"projects.{project}.{module}")


_enter()
