"""An option is declared once, in the signature of its function; few calls lead to the loss."""

import importlib
import inspect
import os
import pathlib
import re
import sys
import traceback

import pytest
from absl import flags

from official.xlnet import cli
from official.xlnet.commands.declarations import COMMON, declaration
from official.xlnet.commands.flag_uses import require_one_value
from official.xlnet.commands.help import verb_help
from official.xlnet.configs.registry import DATASETS, TASKS, VERBS
from official.xlnet.files.arguments import COMMAS
from official.xlnet.files.public import public
from official.xlnet.files.registry import FORMER_OPTIONS
from official.xlnet.modeling.models import xlnet_pretrainer
from official.xlnet.tasks.classification.graph import ClassificationHead
from tests.helpers.world import command, eagerly

ROOT = pathlib.Path(cli.__file__).parents[2]


@pytest.mark.parametrize("verb", VERBS.names())
def test_flags_are_the_parameters_of_the_function(verb):
    declared = declaration(verb)
    parameters = inspect.signature(declared.verb.function).parameters
    for name, parameter in declared.parameters.items():
        default = parameters[name].default
        assert parameter.has_default == (default is not inspect.Parameter.empty), name
        assert not parameter.has_default or parameter.default == default, name
        assert parameter.text, name
    others = set(parameters) - set(declared.parameters)
    assert all(parameters[name].default is not inspect.Parameter.empty for name in others), others


LISTS = []
for _verb in VERBS.names():
    for _parameter in (*COMMON, *declaration(_verb).flags):
        if _parameter.container is list:
            LISTS.append((_verb, _parameter.name))


@pytest.mark.parametrize(("verb", "name"), LISTS)
def test_flags_of_lists_that_are_repeated_are_joined(verb, name):
    flags_of_verb = (*COMMON, *declaration(verb).flags)
    required = [f"--{x.name}=1" for x in flags_of_verb if x.is_required and x.name != name]
    with_commas = any(x.name == name and COMMAS in x.rules for x in flags_of_verb)
    first, items = ("1,2", ["1", "2", "3"]) if with_commas else ("1", ["1", "3"])
    arguments = [f"--{name}={first}", *required, f"--{name}", "3"]
    require_one_value(arguments, flags_of_verb)
    table = declaration(verb).flag_table(COMMON)
    table([verb, *arguments])
    assert table[name].value == items


def test_a_file_has_one_weight():
    parameters = declaration("finetune").flags
    for same in (["a=0.5", "a=0.5"], ["a", "a=1"], ["a=0.5", "b=2"]):
        require_one_value([f"--extra_train={value}" for value in same], parameters)
    with pytest.raises(
        flags.Error, match=r"--extra_train: a: expected one value, got 0\.5 and 2\.0"
    ):
        require_one_value(["--extra_train=a=0.5", "--extra_train", "a=2"], parameters)


SCRATCH = '''
from typing import Annotated

from official.xlnet.api.verbs import register_verb
from official.xlnet.files.public import public
from official.xlnet.files.schema import Range


@register_verb("scratch", former={"score.loudly": False, "score.volume": None})
@public(volume="loudness")
def scratch(
    text: str, *, loudness: Annotated[int, Range(0, 11)] = 3, loud: bool = False, seed: int = 0
) -> object:
    """Speaks.

    Args:
      text: what to say.
      loudness: how loud to speak.
      loud: whether to speak up.
      seed: random seed.
    """
    return loudness
'''


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    (tmp_path / "scratch_verb.py").write_text(SCRATCH)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("scratch_verb", None)
    VERBS.pop("scratch", None)
    for name in ("score.loudly", "score.volume"):
        FORMER_OPTIONS.pop(name, None)


def test_an_option_is_one_parameter_and_one_line(scratch, capsys):
    """A verb of any package, which `--import` brings."""
    brings = "--import=scratch_verb"
    assert cli.main(["scratch", "--text=a"]) == 2
    assert "unknown verb 'scratch'" in capsys.readouterr().err
    assert cli.main(["scratch", "--help", brings]) == 0
    text = "  --loudness=N\n      How loud to speak. (default: 3; in [0, 11])\n"
    assert text in capsys.readouterr().out
    assert cli.main(["--help"]) == 0
    assert "Others:\n  scratch           Speaks.\n" in capsys.readouterr().out
    assert cli.main(["scratch", "--text=a", "--loudness=11"]) == 0
    assert capsys.readouterr().out == "11\n"
    for arguments, said in {
        ("--loudness=12",): "--loudness: expected in [0, 11], got 12",
        ("--loud=maybe",): "--loud: expected true or false, got 'maybe'",
        ("--loudness=1", "--loudness", "2"): "--loudness: expected one value, got '1' and '2'",
        ("--loud", "--noloud"): "--loud: expected one value, got 'true' and 'false'",
        ("--loudnes=1",): "unknown flag --loudnes; did you mean '--loudness'?",
    }.items():
        assert cli.main(["scratch", "--text=a", *arguments]) == 2
        assert capsys.readouterr().err == f"xlnet scratch: {said}\n"
    assert cli.main(["scratch", "--text=a", "--loudness=1", "--loudness=1"]) == 0


def test_a_former_option_is_a_verb_of_its_own(scratch, capsys):
    assert cli.main(["--help", "--import=scratch_verb"]) == 0
    capsys.readouterr()
    assert cli.main(["score", "--text=a", "--loudly", "--loudness=5"]) == 0
    out, error = capsys.readouterr()
    assert out == "5\n" and "score --loudly is now: xlnet scratch" in error
    assert cli.main(["score", "--text=a", "--volume", "7"]) == 0
    out, error = capsys.readouterr()
    assert out == "7\n" and "--volume is now called --loudness" in error
    for off in ("--noloudly", "--loudly=false", "--volume="):
        assert cli.main(["score", "--text=a", off, "--loudness=5"]) == 2
        assert "xlnet score: unknown flag --loudness" in capsys.readouterr().err


def test_a_former_option_of_a_function_calls_another(scratch):
    importlib.import_module("scratch_verb")

    @public()
    def score(text: str, num_orders: int = 1, rest: int | None = None) -> str:
        return f"{text}, {num_orders}"

    assert score("a", loudly=True, loudness=5, rest=None) == 5
    assert score("a", volume=7) == 7
    assert score("a", 2, loudly=False) == "a, 2"
    with pytest.raises(TypeError, match="unexpected keyword argument 'softly'"):
        score("a", softly=True)


def test_help_names_every_flag_and_former_names_are_understood(capsys):
    for verb in VERBS.names():
        declared = declaration(verb)
        listed = re.findall(r"^  --(?:\[no\])?(\w+)", verb_help(declared), re.M)
        assert listed == [flag.name for flag in (*declared.flags, *COMMON)], verb
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


@pytest.mark.slow
@pytest.mark.parametrize("is_eager", [True, False])
def test_few_calls_lie_between_the_command_and_the_loss(is_eager, world, tmp_path, monkeypatch):
    stacks = {}
    # First of all: these may train a model.
    pretraining = {"config": world.config, "data": world.data, "output": tmp_path / "model"}
    finetuning = world.finetune_flags("classification")

    def note(owner, name, what):
        function = getattr(owner, name)

        def noted(*args, **kwargs):
            stacks.setdefault(what, ours())
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, noted)

    note(xlnet_pretrainer, "cross_entropy_sum", "loss")
    note(ClassificationHead, "loss", "head")
    # As with the recipe `tiny`: each batch in slices; in CI compiled, too.
    steps = ("--set=num_steps=1", "--set=warmup_steps=0", "--set=batch_size=6")
    steps += ("--set=parallel_slices=2",)
    with eagerly(is_eager):
        command("pretrain", *steps, **pretraining)
        command("finetune", *finetuning, *steps, output=tmp_path / "task")
    assert any("summed" in call for call in stacks["loss"]), "\n".join(stacks["loss"])
    assert len(stacks["loss"]) <= 10, "\n".join(stacks["loss"])
    assert len(stacks["head"]) <= 12, "\n".join(stacks["head"])


def test_the_help_of_finetune_lists_the_tasks_that_are_known(capsys):
    assert cli.main(["finetune", "--help"]) == 0
    words = capsys.readouterr().out.replace(",", " ").replace(".", " ").split()
    assert {*TASKS.names(), *DATASETS.names()} <= set(words)
