"""A wrong argument is named as the user wrote it, for verbs and for functions of models."""

import math

import numpy as np
import pytest

from official import xlnet
from official.xlnet import cli
from official.xlnet.commands.declarations import declaration
from official.xlnet.configs.registry import VERBS
from official.xlnet.errors import XLNetError
from official.xlnet.files.schema import OneOf, Range

FAR = (-5, 0, 10**6, 10**12, 1e30)


def wrong_words(flag):
    """Values that a flag cannot have, by its type and its rules."""
    if flag.value_type is bool:
        yield "maybe"
    if flag.value_type in (int, float) and not flag.container:
        yield "many"
    for rule in flag.rules:
        if isinstance(rule, OneOf):
            yield "no"
        if isinstance(rule, Range):
            outside = [value for value in FAR if not rule.holds(value)]
            yield from map(str, map(flag.value_type, outside[:1]))


@pytest.mark.parametrize("verb", VERBS.names())
def test_each_flag_of_a_verb_is_named(verb, capsys):
    declared = declaration(verb)
    needed = {
        flag.name: f"--{flag.name}={'1' if flag.value_type in (int, float) else 'x'}"
        for flag in declared.flags
        if flag.is_required
    }
    first = [*verb.split(), *(["x"] if declared.verb.positional else [])]
    for flag in declared.flags:
        others = [words for name, words in needed.items() if name != flag.name]
        for wrong in wrong_words(flag):
            assert cli.main([*first, *others, f"--{flag.name}={wrong}"]) == 2
            sentence = capsys.readouterr().err.splitlines()[-1]
            assert f"--{flag.name}" in sentence, f"{verb} --{flag.name}={wrong}: {sentence}"


TEXTS = "--text=The ____ sat"
TOGETHER = {
    "choices": ["candidates", TEXTS, "--choices=cat, "],
    "order": ["words", TEXTS, "--word_ends", "--order=pseudo"],
    "given": ["words", TEXTS, "--word_ends", "--given=right"],
    "punctuation": ["words", TEXTS, "--word_ends", "--punctuation=alone"],
    "weights": ["rescore", "--input=x", "--weights=am:1", "--format=kaldi"],
    "format": ["rescore", "--input=-"],
    "layer": ["embed", "--input=x", "--output=y.npy", "--layer=1", "--layers=2,3"],
}


@pytest.mark.parametrize("name", TOGETHER)
def test_arguments_that_exclude_each_other_are_named(name, world, capsys):
    assert cli.main([*TOGETHER[name], f"--model={world.pretrained}"]) == 2
    assert f": {name}: expected" in capsys.readouterr().err.replace("--", "")


WRONG = {
    "score": {
        "order": [3, None, "no", [0, 0], [[0], [1]], ["a"], lambda ids: 3, math.nan],
        "num_orders": [0, "x", 1.5, True],
        "seed": [-1, "x", None],
        "tokenizer": [3, "spiece.model"],
    },
    "generate": {
        "num_tokens": [0, "x"],
        "sampling": [3, "greedy"],
        "tokenizer": [3],
        "max_blank_length": [0, None],
        "temperature": [-1, "x", math.nan],
        "top_k": [-1, 1.5],
        "top_p": [-1, 2, "x"],
        "seed": [-1, "x"],
        "steps": [0, "x"],
        "select": [3, "no"],
        "remask": [3, "x"],
    },
    "blank_candidates": {
        "candidates": [0, None, ["x", ""], 1.5],
        "tokenizer": [3],
        "max_length": [0, "x"],
    },
    "consistency": {
        "scorer": [3, None, np.zeros(3)],
        "texts": [3, [3]],
        "num_orders": [1, "x"],
        "seed": [-1, 0.5],
        "tokenizer": ["x"],
    },
    "embed": {
        "pooling": ["no", 3],
        "layer": ["x", 99, [0.5]],
        "max_length": [0, "x"],
        "batch_size": [0, "x"],
        "window_stride": [-1, "x"],
        "tokenizer": [3],
    },
}
TEXT = {"embed": "the water", "score": "the water", "generate": "the ____", "consistency": ["a"]}


@pytest.mark.parametrize("name", WRONG)
def test_each_argument_of_a_function_is_named(name, world):
    function = getattr(xlnet, name)
    for argument, values in WRONG[name].items():
        for wrong in values:
            arguments = [world.pretrained, TEXT.get(name, "the ____ sat")]
            options = {argument: wrong}
            if argument == "scorer":
                arguments[0] = options.pop(argument)
            if argument == "texts":
                arguments[1] = options.pop(argument)
            with pytest.raises(XLNetError, match=rf"\b{argument}\b") as caught:
                function(*arguments, **options)
            assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("eager")
def test_functions_take_what_their_classes_take(world):
    scorer = xlnet.Scorer(world.pretrained)
    text = "the water was made"
    num_tokens = len(scorer.tokenizer.encode(text))
    backwards = [*range(num_tokens)][::-1]
    for order in (backwards, [backwards], np.array(backwards), lambda ids: [backwards]):
        [expected] = scorer([text], order)
        assert xlnet.score(world.pretrained, text, order).total == expected.total
    expected = xlnet.consistency(scorer, [text], 2)
    assert xlnet.consistency(world.pretrained, text, 2) == expected[0]
    model = xlnet.load_pretrainer(world.pretrained)
    assert xlnet.consistency(model, [text], 2, tokenizer=scorer.tokenizer) == expected


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"task": {"freeze_encoder": True}}, "task.freeze_encoder"),
        ({"training": {"freeze_network": True}}, "training.freeze_network"),
        ({"training": {"freeze_layers": 2}}, "training.freeze_layers"),
    ],
)
def test_frozen_layers_that_would_get_adapters_are_named(settings, key):
    settings = {"model": {"num_layers": 2, "vocab_size": 30}, **settings}
    config = xlnet.XLNetConfig.from_dict(settings)
    config.check()
    config.training.lora_rank = 1
    with pytest.raises(XLNetError, match=rf"^{key}: expected .* with training\.lora_rank"):
        config.check()


def test_a_vocabulary_is_a_file_or_its_folder(world):
    folder = world.vocab
    assert xlnet.Tokenizer(folder).sha256 == xlnet.Tokenizer(f"{folder}/spiece.model").sha256
    with pytest.raises(XLNetError, match="no vocabulary at"):
        xlnet.Tokenizer(f"{folder}/no")


def test_a_text_above_a_window_is_named_with_its_file_and_row(world, tmp_path, capsys):
    lines = ["the water", "the water was made " * 99]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    arguments = [f"--model={world.pretrained}", f"--input={tmp_path}/a.txt"]
    for verb in (["consistency"], ["words", "--word_ends"], ["score", "--order=confidence"]):
        assert cli.main([*verb, *arguments]) == 2
        sentence = capsys.readouterr().err.splitlines()[-1]
        assert "a.txt, row 2, the water was made" in sentence, sentence
