"""The verbs of the `xlnet` command: each is a function, whose signature declares its flags.

To add a flag, add a parameter with its annotation, its default and its line under `Args:`. To add a
verb, add a function below and a row to `VERBS`. The first line of its docstring is shown by `xlnet
--help`, in the group that `official.xlnet.cli` has the verb in, and so is the command that its
example begins with, behind `$`. What the function returns is the last line of standard output.

A module is imported only when its verb is run.
"""

from __future__ import annotations

from official.xlnet.commands.declarations import Parameter, Verb
from official.xlnet.files.arguments import COMMAS
from official.xlnet.files.schema import OneOf

VERBS = {
    "convert": Verb("official.xlnet.checkpoints.convert", "convert"),
    "embed": Verb("official.xlnet.jobs.file_embedding", "embed_file"),
    "evaluate": Verb("official.xlnet.jobs.prediction", "evaluate"),
    "export": Verb("official.xlnet.serving.export", "export"),
    "finetune": Verb("official.xlnet.jobs.finetuning", "finetune"),
    "generate": Verb("official.xlnet.commands.generate", "generate_file"),
    "inspect attention": Verb("official.xlnet.projects.pictures.inspect_verbs", "attention"),
    "inspect records": Verb(
        "official.xlnet.projects.pictures.inspect_verbs", "records", positional="data"
    ),
    "predict": Verb("official.xlnet.jobs.file_prediction", "predict_file"),
    "prepare": Verb(
        "data_prep.pipelines.prepare", "prepare", terminal="official.xlnet.commands.prepare"
    ),
    "pretrain": Verb("official.xlnet.training.pretraining", "pretrain"),
    "score": Verb("official.xlnet.commands.score", "score_file"),
    "vocab": Verb("official.xlnet.jobs.vocabulary", "train_vocabulary"),
}


# Flags of all verbs.
COMMON = (
    Parameter(
        "import", str, list, (COMMAS,), (), "extension modules to import before the command."
    ),
    Parameter(
        *("verbosity", str, None, (OneOf(("error", "warning", "info", "debug")),), "warning"),
        "least severe messages to show; from info on, also messages of TensorFlow.",
    ),
)
