"""An option is declared once, in the signature of its function; few calls lead to the loss."""

import importlib
import inspect
import os
import pathlib
import re
import sys
import traceback

import pytest

from official.xlnet import cli
from official.xlnet.commands import COMMON, VERBS
from official.xlnet.commands.declarations import Verb
from official.xlnet.modeling.models import xlnet_pretrainer
from official.xlnet.tasks.classification.graph import ClassificationHead
from tests.helpers.world import command

ROOT = pathlib.Path(cli.__file__).parents[2]


@pytest.mark.parametrize("verb", VERBS)
def test_flags_are_the_parameters_of_the_function(verb):
    """What is read from the source is what the imported function has."""
    declared = VERBS[verb]
    module = importlib.import_module(declared.module)
    parameters = inspect.signature(getattr(module, declared.name)).parameters
    for name, parameter in declared.parameters.items():
        default = parameters[name].default
        assert parameter.has_default == (default is not inspect.Parameter.empty), name
        assert not parameter.has_default or parameter.default == default, name
        assert parameter.text, name
    known = {*declared.parameters, *declared.former_names}
    others = set(parameters) - known
    assert all(parameters[name].default is not inspect.Parameter.empty for name in others), others


def test_an_option_is_one_parameter_and_one_line(tmp_path, monkeypatch, capsys):
    source = (ROOT / "official/xlnet/commands/generate.py").read_text()
    changed = source.replace(
        "    seed: Annotated",
        "    loudness: Annotated[int, Range(0, 11)] = 3,\n    seed: Annotated",
    ).replace("      seed: random", "      loudness: how loud to speak.\n      seed: random")
    (tmp_path / "scratch_generate.py").write_text(
        changed.replace("    require_json_lines(output)", "    return loudness", 1)
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    model = f"--model={tmp_path}"
    monkeypatch.setitem(VERBS, "scratch", Verb("scratch_generate", "generate_file"))
    assert not Verb("official.xlnet.commands.generate", "generate_file").parameters.get("loudness")
    assert cli.main(["scratch", "--help"]) == 0
    text = "  --loudness=N\n      How loud to speak. (default: 3; in [0, 11])\n"
    assert text in capsys.readouterr().out
    assert cli.main(["scratch", model, "--loudness=11"]) == 0
    assert capsys.readouterr().out == "11\n"
    assert cli.main(["scratch", model, "--loudness=12"]) == 2
    assert capsys.readouterr().err == "xlnet scratch: --loudness: expected in [0, 11], got 12\n"
    assert cli.main(["scratch", model, "--loudnes=1"]) == 2
    assert "did you mean '--loudness'?" in capsys.readouterr().err
    sys.modules.pop("scratch_generate")


def test_help_names_every_flag_and_former_names_are_understood(capsys):
    for verb, declared in VERBS.items():
        listed = re.findall(r"^  --(?:\[no\])?(\w+)", declared.help(COMMON), re.M)
        flags = [name for name in declared.parameters if name != declared.positional]
        assert listed == [*flags, *(x.name for x in COMMON)], verb
    assert cli.main(["export", "--model_dir=none", "--output=x"]) == 2
    assert "--model_dir is now called --model" in capsys.readouterr().err


def ours():
    """The calls of this package on the stack, from the outermost."""
    files = (
        (frame.f_code.co_filename, frame.f_code.co_name) for frame, _ in traceback.walk_stack(None)
    )
    known = [
        (os.path.relpath(path, ROOT), name) for path, name in files if path.startswith(str(ROOT))
    ]
    calls = [
        f"{path}: {name}" for path, name in known if path.startswith(("official", "data_prep"))
    ]
    return calls[::-1]


@pytest.mark.usefixtures("eager")
def test_few_calls_lie_between_the_command_and_the_loss(world, tmp_path, monkeypatch):
    stacks = {}

    def note(owner, name, what):
        function = getattr(owner, name)

        def noted(*args, **kwargs):
            stacks.setdefault(what, ours())
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, noted)

    note(xlnet_pretrainer, "cross_entropy_sum", "loss")
    note(ClassificationHead, "loss", "head")
    steps = ("--set=num_steps=1", "--set=warmup_steps=0")
    flags = {"config": world.config, "data": world.data, "output": tmp_path / "model"}
    command("pretrain", *steps, **flags)
    flags = world.finetune_flags("classification")
    command("finetune", *flags, *steps, output=tmp_path / "task")
    assert len(stacks["loss"]) <= 9, stacks["loss"]
    assert len(stacks["head"]) <= 13, stacks["head"]
