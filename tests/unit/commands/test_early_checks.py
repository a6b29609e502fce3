"""Wrong flags, values and models are answered with a hint, before TensorFlow is imported."""

import functools
import json
import random
import subprocess
import sys

import pytest

from official.xlnet import cli
from official.xlnet.commands.declarations import declaration
from official.xlnet.commands.flag_errors import SYNONYMS
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import DATASETS, TASKS, VERBS
from official.xlnet.files.arguments import OutputRule
from official.xlnet.files.schema import OneOf, Range

# Of CPU; half a second on a fast machine. TensorFlow's import takes seven.
SECONDS = 1.0
# Prints the CPU-seconds of each case, the import of the program in the first one.
PROGRAM = """
import json, sys, time
from official.xlnet import cli
spent, seconds = 0.0, []
for case in json.loads(sys.argv[1]):
    assert cli.main(case) == 2, case
    assert not {"tensorflow", "pandas"} & set(sys.modules), case
    seconds.append(time.process_time() - spent)
    spent += seconds[-1]
print(json.dumps(seconds))
"""


def misspelt(rng, word):
    """Without one of its letters, and not another word."""
    place = rng.randrange(1, len(word) - 1)
    return word[:place] + word[place + 1 :]


def without(flags, name):
    return [flag for flag in flags if not flag.startswith(f"--{name}=")]


def wrong_cases(rng):
    """Cases of each kind, drawn from the tables of names: arguments, and a part of the answer."""
    declared = {verb: declaration(verb) for verb in VERBS.names()}
    whole = {
        verb: [
            f"--{x.name}={'1' if x.value_type is int else 'x'}"
            for x in found.parameters.values()
            if x.is_required
        ]
        for verb, found in declared.items()
        if not found.verb.positional
    }
    for verb, given in whole.items():
        parameters = declared[verb].parameters
        if any(name in parameters and parameters[name].is_required for name in ("model", "source")):
            yield [verb, *given], "no configuration at 'x': expected a model directory"
        outputs = [x for x in parameters.values() if x.name == "output"]
        for rule in [x for output in outputs for x in output.rules if isinstance(x, OutputRule)]:
            other = "README.md" if rule.is_directory else "docs"  # In the working directory.
            answer = (
                f"--output: expected a {'directory' if rule.is_directory else 'file'}, got the "
            )
            yield [verb, *without(given, "output"), f"--output={other}"], answer
        flag = rng.choice([name for name in parameters if len(name) > 5])
        yield [verb, *given, f"--{misspelt(rng, flag)}=1"], "; did you mean '--"
        numbers = [
            x
            for x in parameters.values()
            if any(isinstance(rule, Range) and not rule.holds(-5) for rule in x.rules)
        ]
        for parameter in rng.sample([x for x in numbers if not x.container], min(1, len(numbers))):
            flag, others = f"--{parameter.name}", without(given, parameter.name)
            yield [verb, *others, f"{flag}=-5"], f"{flag}: expected "
            yield [verb, *others, f"{flag}=many"], f"{flag}: expected a"
        words = [x for x in parameters.values() if any(isinstance(r, OneOf) for r in x.rules)]
        for parameter in rng.sample(words, min(1, len(words))):
            flag, others = f"--{parameter.name}", without(given, parameter.name)
            yield [verb, *others, f"{flag}=no"], f"{flag}: expected one of"
    name = misspelt(rng, "README.md")
    yield ["embed", "--input=x", "--output=x.npy", f"--model={name}"], "; did you mean 'README.md'?"
    name = misspelt(rng, "transformer_xl")
    yield ["pretrain", "--data=x", "--output=x", f"--config={name}"], "mean 'transformer_xl'?"
    name = f"configs/{misspelt(rng, 'small')}.yaml"
    yield ["pretrain", "--data=x", "--output=x", f"--config={name}"], "'configs/small.yaml'?"
    for verb in ("prepare", "pretrain"):
        others = without(whole[verb], "config")
        yield [verb, *others, "--config=no.yaml"], "no configuration at 'no.yaml': expected"
    config, given = XLNetConfig(), ["--config=tiny", "--data=x", "--output=x"]
    for section in config.__dataclass_fields__:
        key = rng.choice([x for x in getattr(config, section).known_keys() if len(x) > 8])
        wrong = misspelt(rng, key)
        yield ["pretrain", *given, f"--set={section}.{wrong}=1"], f"did you mean '{section}."
        yield ["pretrain", *given, f"--set={wrong}=1"], "did you mean '"
        yield ["finetune", *whole["finetune"], f"--{wrong}=1"], "did you mean '--"
    for other in rng.sample([*SYNONYMS], 8):
        for verb in rng.sample([*whole], 3):
            known = {*declared[verb].parameters, *declared[verb].former_names}
            is_key = "set" in known and config.sections_of(other)
            if other not in known and not is_key:
                hints = ("; did you mean ", "; --help shows", " is a key of the configuration")
                yield [verb, *whole[verb], f"--{other}=3"], hints
    name = misspelt(rng, rng.choice([x for x in [*TASKS.names(), *DATASETS.names()] if len(x) > 6]))
    yield ["finetune", "--train=x", "--output=x", f"--task={name}"], "; did you mean '"
    yield ["finetune", "--train=x", "--output=x", "--learning_rate", "-1"], "--set=training.learn"
    yield ["finetune", "--train=x", "--output=x", "--num_steps=0"], "training.num_steps: expected"
    yield ["evaluate", "--model=x", "--data=x", "--num_layers=3"], "model.num_layers is a key of"
    yield ["predict", "--text=Hi", "--output=x"], "; did you mean --input=FILE?"


@pytest.mark.parametrize("seed", range(2))
def test_wrong_flags_and_values_are_answered_with_a_hint_at_once(seed):
    cases = [*wrong_cases(random.Random(seed))]
    arguments = [sys.executable, "-c", PROGRAM, json.dumps([case for case, _ in cases])]
    for _ in range(3):  # The first run may compile modules, on a machine that is busy.
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        slowest = max(json.loads(done.stdout))
        if slowest < SECONDS:
            break
    for (case, hints), said in zip(cases, done.stderr.splitlines(), strict=True):
        assert any(hint in said for hint in ([hints] if isinstance(hints, str) else hints)), said
        assert said.startswith(f"xlnet {case[0]}: ")
    assert slowest < SECONDS


def test_a_pretrained_model_is_refused_for_prediction(world, monkeypatch, capsys):
    """From its `config.yaml`, as are settings that do not suit the model to start from."""
    model = str(world.pretrained)
    for name in (
        "tensorflow",
        "official.xlnet.jobs.file_prediction",
        "official.xlnet.jobs.finetuning",
    ):
        monkeypatch.setitem(sys.modules, name, None)  # An import of them raises.
    assert cli.main(["predict", f"--model={model}", "--input=x", "--output=y"]) == 2
    assert "expected a fine-tuned model, got one without a task" in capsys.readouterr().err
    flags = ["finetune", f"--init_from={model}", "--train=x", "--output=x"]
    assert cli.main([*flags, "--max_length=0"]) == 2
    assert "finetune: task.max_length: expected in [1" in capsys.readouterr().err
    assert cli.main([*flags, "--config=tiny", "--epochs", "3", "--task=sts"]) == 2
    assert "did you mean 'stsb'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("pretrain --config=tiny --data=a --output=b --cluster_timeout=0", "expected in [1, "),
        ("finetune --train=a --output=b --cluster_timeout=0", "expected in [1, "),
        ("evaluate --model=a --data=b --by=word", "expected one of"),
        ("export --model=a --output=b --max_characters=0", "expected at least 1, got 0"),
    ],
)
def test_wrong_values_are_refused(command, message, capsys):
    words = command.split()
    assert cli.main(words) == 2
    flag = words[-1].partition("=")[0]
    assert f"{words[0]}: {flag}: {message}" in capsys.readouterr().err


def test_keys_that_are_typed_as_flags_are_settings(monkeypatch):
    """Other flags keep their meaning, and a value of its own word belongs to its key."""
    found = {}

    @functools.wraps(VERBS["finetune"].function)
    def take(**values):
        found.update(values)

    monkeypatch.setattr(VERBS["finetune"], "function", take)
    flags = ["--train=x", "--output=y", "--epochs=3", "--learning_rate", "1e-4", "--cpu_devices=2"]
    assert cli.main(["finetune", *flags, "--task.max_length=9", "--set=seed=1"]) == 0
    settings = ["task.epochs=3", "training.learning_rate=1e-4", "task.max_length=9", "seed=1"]
    missing = dict.fromkeys(("dev", "init_from"))
    assert found == {"train": "x", "output": "y", "cpu_devices": 2, "set": settings, **missing}
