"""Projects: parts beside the core, each a folder here on the hooks that any package has.

The core imports no project, and a project imports no other. The table below has an entry for each:
which names its modules register. A module is imported when one of its names is first looked up.
Recipes are in the folder `recipes` of a project, and are found by their names.

To remove a project, delete its folder, its tests (`tests/projects/<name>`) and its entry; then run
`python -m tools.api_page`, which writes the pages of commands and names anew.
"""

from __future__ import annotations

import os

from official.xlnet.configs import registry
from official.xlnet.files.registry import Registry
from official.xlnet.modeling.ops import keras_names

# {project: (registry, module of the project, the names that it registers there)}
PROJECTS: dict[str, tuple[tuple[Registry, str, tuple[str, ...]], ...]] = {
    "any_order": (
        (registry.ORDERS, "orders", ("right_to_left", "inside_out", "confidence", "entropy")),
        (registry.ORDER_ESTIMATES, "mixtures", ("mixture",)),
        (registry.OBJECTIVES, "absorbing_diffusion", ("absorbing_diffusion",)),
        (registry.SETTINGS, "settings", ("objective.kind=absorbing_diffusion",)),
        (registry.DECODERS, "stepwise", ("steps",)),
        (registry.BREAKDOWNS, "context_losses", ("context",)),
        (
            registry.VERBS,
            "verbs",
            (
                "words",
                "mutual_information",
                "pairs",
                "norms",
                "consistency",
                "candidates",
                "unmask",
                "score_steps",
            ),
        ),
        (
            registry.FORMER_OPTIONS,
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
                "score.steps",
                "score.select",
            ),
        ),
        (registry.PUBLIC_NAMES, "candidates", ("blank_candidates",)),
        (registry.PUBLIC_NAMES, "consistency", ("consistency",)),
        (registry.PUBLIC_NAMES, "words.information", ("mutual_information",)),
        (registry.PUBLIC_NAMES, "words", ("words_of",)),
    ),
    "buckets": (
        (registry.FILE_SYSTEMS, "file_system", (registry.OTHER_SCHEMES,)),
        (registry.FILE_SYSTEMS, "hub_file_system", ("hf",)),
        (registry.LOCAL_COPIES, "staging", ("local_paths", "local_copy", "with_urls")),
    ),
    "clusters": (
        (registry.STRATEGIES, "multi_worker", ("multi_worker",)),
        (registry.WORKERS, "workers", ("CollectiveAllReduceStrategy",)),
    ),
    "garden": ((keras_names.CLASSES, "bert_style_encoder", ("BertStyleLayer",)),),
    "pictures": (
        (registry.PRETRAINING_PAGES, "pretraining_page", ("report.html",)),
        (registry.TASK_PAGES, "task_page", ("report.html",)),
        (registry.VERBS, "inspect_verbs", ("inspect attention", "inspect records")),
        (registry.REMOVED_VERBS, "inspect_verbs", ("inspect runs", "inspect steps")),
        (registry.PUBLIC_NAMES, "attention_maps", ("attention_maps",)),
        (registry.PUBLIC_NAMES, "masks", ("make_masks",)),
    ),
    "rescoring": (
        (registry.TEXT_ROW_FORMATS, "formats", ("kaldi", "nbest")),
        (registry.VERBS, "verbs", ("rescore",)),
        (registry.FORMER_OPTIONS, "verbs", ("score.format", "score.weights")),
    ),
    "search": (
        (registry.FOLDER_READERS, "folders", ("ranking", "ranking/qrels")),
        (registry.SETTINGS, "settings", ("task.rerank_depth",)),
        (registry.TEXT_ROW_FORMATS, "documents", ("beir", "trec")),
    ),
    "sequences": (
        (registry.LABEL_UNITS, "letters", ("letter",)),
        (registry.TASKS, "number_task", ("token_regression",)),
        (registry.FILE_READERS, "number_reader", ("token_regression",)),
        (registry.HEADS, "number_graph", ("token_regression",)),
        (registry.SERVICES, "number_service", ("token_regression",)),
        (registry.SETTINGS, "number_settings", ("task.name=token_regression",)),
        (registry.TEXT_FORMATS, "fasta", ("fasta",)),
        (registry.TEXT_FILES, "fasta", ("*.fasta", "*.fa", "*.faa", "*.fna", ">*")),
        (registry.TEXT_FILES, "fasta", ("*.fastq", "*.fq", "@*")),
        (registry.ROW_FILES, "fasta_rows", ("*.fasta", "*.fa", "*.faa", "*.fna", ">*")),
        (registry.ROW_FILES, "fasta_rows", ("*.fastq", "*.fq", "@*")),
    ),
    "survey": (
        (registry.NETWORKS, "bert", ("bert", "gpt", "gpt2")),
        (keras_names.CLASSES, "bert", ("BertEncoder", "GptEncoder", "Gpt2Encoder", "MaskedLMHead")),
        (registry.DEPTHS, "universal", ("shared", "adaptive")),
        (keras_names.CLASSES, "universal", ("SharedDepth", "AdaptiveDepth")),
        (registry.INPUT_FORMATS, "contiguous", ("full_sentences", "doc_sentences")),
        (registry.AUXILIARY, "auxiliary", ("next_sentence", "capitalization", "token_document")),
        (registry.ANSWER_MODULES, "stochastic_answer", ("san",)),
        (registry.TASK_LOSSES, "language_model_loss", ("language_model",)),
        (registry.BASELINES, "text_baselines", ("text",)),
        (
            registry.SETTINGS,
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
        (registry.TASKS, "task", ("multitask",)),
        (registry.HEADS, "graph", ("multitask",)),
        (registry.SERVICES, "service", ("multitask",)),
        (
            registry.SETTINGS,
            "settings",
            ("task.name=multitask", "task.subtasks", "task.regressions", "task.rankings"),
        ),
    ),
    "trials": (
        (registry.VERBS, "verbs", ("cross_validate", "finetune_repeatedly", "search_settings")),
        (
            registry.PUBLIC_NAMES,
            "verbs",
            ("cross_validate", "finetune_repeatedly", "search_settings"),
        ),
        (
            registry.FORMER_OPTIONS,
            "verbs",
            ("finetune.folds", "finetune.runs", "finetune.num_runs", "finetune.search"),
        ),
        (registry.RUN_FILES, "runs_file", ("folds.json", "runs.json", "search.json")),
    ),
}


def _enter() -> None:
    for project, parts in PROJECTS.items():
        recipes = os.path.join(os.path.dirname(__file__), project, "recipes")
        registry.RECIPE_FOLDERS.append(recipes)
        for table, module, names in parts:
            table.modules |= dict.fromkeys(names, f"projects.{project}.{module}")


_enter()
