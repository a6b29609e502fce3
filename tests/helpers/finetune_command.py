"""`xlnet finetune` and other commands, as tests run them."""

import json
import os
import pathlib

import yaml

from official.xlnet import cli
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.task_corpora import task_config


def read_json(*path):
    return json.loads(pathlib.Path(*path).read_text())


def finetune(task, train, dev, output, *arguments, mem_len=0, **overrides):
    """Runs the command; returns its status."""
    tree = task_config(mem_len=mem_len).as_dict()
    tree["task"] = {"max_length": 23, "num_buckets": 1}
    os.makedirs(output, exist_ok=True)
    path = os.path.join(output, "recipe.yaml")
    with open(path, "w") as file:
        yaml.safe_dump(tree, file)
    sets = [f"--set={name}={value}" for name, value in overrides.items()]
    return cli.main(
        [
            *("finetune", f"--task={task}", f"--train={train}", f"--dev={dev}"),
            *(f"--output={output}", f"--config={path}", *sets, *arguments),
            f"--vocab={vocabulary_dir()}/spiece.model",
        ]
    )


def run(capfd, *arguments):
    assert cli.main(list(arguments)) == 0, capfd.readouterr().err
    return json.loads(capfd.readouterr().out.splitlines()[-1])
