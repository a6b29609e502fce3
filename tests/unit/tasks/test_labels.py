"""Labels that look alike, and tags of words in every scheme."""

import json
import random
import re

import pytest
from seqeval.metrics.sequence_labeling import get_entities

from data_prep.tasks.task_data import read_task
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import DataError
from official.xlnet.tasks.label_types import with_label_type
from official.xlnet.tasks.labels import label_index
from official.xlnet.tasks.token_classification import TaggedExample
from official.xlnet.tasks.token_classification.task import entity_tags
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.package.of_projects import entries
from tests.helpers.served_models import random_task

ALIKE = [("good", "good "), ("\u00a0good", "good"), ("caf\u00e9", "cafe\u0301")]
ALIKE += [("1", "1.0"), ("1.00", "1.0"), ("True", "true"), ("-3", "-3.0")]
ALIKE += [("a", "a\u200b"), ("a", "\u200fa"), ("1", "+1"), ("1", "1e0"), ("1", "１")]
SCHEMES = {"BIOES": "BIES", "BILOU": "BILU", "BMES": "BMES"}


@pytest.fixture(scope="module")
def tagging():
    return random_task("token_classification")[1]


# {task: a function that makes an example with a label}
EXAMPLES = {
    "classification": lambda label: TextExample("1", ("a",), label),
    "multi_label": lambda label: TextExample("1", ("a",), (label,)),
    "token_classification": lambda label: TaggedExample("1", ("a",), (label,)),
} | entries("LABELLED_EXAMPLES")
# {task: settings that its examples need}
SETTINGS = entries("SETTINGS_OF_LABELS")
# {task: what its classes begin with}
PREFIXES = entries("PREFIXES_OF_LABELS")


def config_of(kind):
    settings = SETTINGS.get(kind, {})
    return XLNetConfig.from_dict({"task": {"name": kind, **settings}})


@pytest.mark.parametrize("alike", ALIKE, ids=ascii)
@pytest.mark.parametrize("kind", EXAMPLES)
def test_labels_that_look_the_same_are_no_two_classes(kind, alike):
    config = config_of(kind)
    with pytest.raises(DataError, match=r"training data.*: expected labels that differ in more"):
        TASKS[kind].complete_settings(config, [EXAMPLES[kind](label) for label in ("bad", *alike)])
    config.task.labels = ()
    different = ("Good", "good", "goods", "½", "1/2")
    TASKS[kind].complete_settings(config, [EXAMPLES[kind](label) for label in different])
    assert len(config.task.labels) == 5


@pytest.mark.parametrize(
    "labels, separator",
    [
        (["calm|kind", "kind|loud", "calm|loud"], "|"),
        (["a; b", "a", "b"], ";"),
        (["red green", "red", "green"], " "),
    ],
)
def test_classes_read_as_one_are_not_trained(labels, separator):
    """Another separator than the comma; with single classes of such names, they are classes."""
    config, example = config_of("multi_label"), EXAMPLES["multi_label"]
    with pytest.raises(DataError, match=f"set task.label_separator to '{re.escape(separator)}'"):
        TASKS["multi_label"].complete_settings(config, [example(label) for label in labels])
    TASKS["multi_label"].complete_settings(
        config, [example(label) for label in ("New York", "Bern|CH")]
    )


@pytest.mark.parametrize("kind", EXAMPLES)
def test_classes_that_are_listed_keep_their_order(kind):
    config, prefix = config_of(kind), PREFIXES.get(kind, "")
    listed = config.task.labels = tuple(f"{prefix}{label}" for label in ("z", "b", "a"))
    examples = [EXAMPLES[kind](label) for label in "ab"]
    TASKS[kind].complete_settings(config, examples)
    assert config.task.labels == listed
    with pytest.raises(DataError, match=r"training data.*: expected one of the labels z, b, a"):
        TASKS[kind].complete_settings(config, [*examples, EXAMPLES[kind]("other")])


@pytest.mark.parametrize("kind", EXAMPLES)
def test_whole_numbers_are_classes_in_their_order(kind):
    config = config_of(kind)
    drawn = random.Random(0).sample([*map(str, range(-1, 12)), "b", "a"], 15)
    TASKS[kind].complete_settings(config, [EXAMPLES[kind](label) for label in drawn])
    found = [label.removeprefix(PREFIXES.get(kind, "")) for label in config.task.labels]
    assert found == [*map(str, range(-1, 12)), "a", "b"]


@pytest.mark.parametrize(("train", "dev"), ALIKE[3:])
def test_a_label_is_found_by_what_it_says(train, dev):
    """A frame has 1.0 where its file has 1; a model keeps the name that it was trained with."""
    config = config_of("classification")
    config.task.labels = ("other", train, "1.5", "01")
    assert label_index(config.task.labels, dev, "row 1") == 1
    with pytest.raises(DataError, match="row 1: expected one of the labels other"):
        label_index(config.task.labels, "001", "row 1")


@pytest.mark.parametrize("kind", ["classification", "multi_label"])
def test_an_unknown_label_names_its_example(kind):
    config = config_of(kind)
    config.task.labels = ("bad", "good")
    task = TASKS[kind](config, Tokenizer(f"{vocabulary_dir()}/spiece.model"))
    with pytest.raises(DataError, match="example 1: expected one of the labels bad, good, got '7'"):
        task.label(EXAMPLES[kind]("7"))


MISSING = [
    (["entailment", "-", "neutral", "contradiction"], "'-'"),
    (["0", "1", "2", "-1"], "'-1'"),
]


@pytest.mark.parametrize(
    ("labels", "hidden"),
    [*MISSING, (["-1", "0", "1"], None), (["-1", "1"], None), (["-", "+"], None)],
)
def test_what_data_sets_write_for_a_missing_label_is_refused(labels, hidden):
    config = config_of("classification")
    examples = [EXAMPLES["classification"](label) for label in labels]
    if hidden is None:
        TASKS["classification"].complete_settings(config, examples)
        return
    with pytest.raises(DataError, match=f"expected classes, got {hidden} beside .* missing label"):
        TASKS["classification"].complete_settings(config, examples)
    config.task.labels = tuple(labels)  # Unless it is meant.
    TASKS["classification"].complete_settings(config, examples)


def drawn_tags(rng, scheme, kinds=("-X", "-Y-Z")):
    """(tags, their entities) in letters of a scheme: begin, inside, end, alone."""
    begin, inside, end, alone = SCHEMES[scheme]
    tags, entities = [], []
    while len(tags) < 11:
        number, kind, start = rng.randint(0, 4), rng.choice(kinds), len(tags)
        letters = [begin, *inside * (number - 2), end] if number > 1 else [alone] * number
        tags += [f"{letter}{kind}" for letter in letters] or ["O"]
        entities += [(kind[1:] or "entity", start, len(tags) - 1)] if letters else []
    return tags, entities


@pytest.mark.parametrize("kinds", [("-X", "-Y-Z"), ("",)], ids=["kinds", "letters"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_entities_are_found_in_every_scheme(scheme, kinds, tagging):
    drawn = [drawn_tags(random.Random(seed), scheme, kinds) for seed in range(20)]
    found = [get_entities(entity_tags(tags, kinds == ("",))) for tags, _ in drawn]
    assert found == [each for _, each in drawn]
    # The first entity of each text, and nothing else, is found.
    guesses = [
        {"tags": [tag if place <= entities[0][2] else "O" for place, tag in enumerate(tags)]}
        for tags, entities in drawn
    ]
    examples = [TaggedExample("1", ("a",) * len(tags), tuple(tags)) for tags, _ in drawn]
    found = tagging.evaluate(examples, guesses)
    recall = len(drawn) / sum(len(entities) for _, entities in drawn)
    assert (found["precision"], found["recall"]) == (1.0, pytest.approx(recall))


def test_tags_without_a_scheme(tagging):
    """Runs of the same tag, among them those that begin with the letters of a scheme."""
    tags = ("ORG", "ORG", "O", "EVENT", "EVENT", "person-other", "org-other", "BIRD", "BIRD")
    guess = ("ORG", "O", "O", "EVENT", "EVENT", "person-other", "person-other", "O", "BIRD")
    found = tagging.evaluate([TaggedExample("1", tags, tags)], [{"tags": list(guess)}])
    # ORG, EVENT, person-other, org-other, BIRD; ORG (shorter), EVENT, person-other (longer), BIRD.
    expected = {"recall": 1 / 5, "precision": 1 / 4, "f1": 2 / 9, "word_accuracy": 6 / 9}
    assert found == pytest.approx(expected)


def test_tags_are_evaluated_by_what_they_say(tagging):
    tagging.labels = ("B-caf\u00e9", "O", "1")
    tags = ("B-cafe\u0301", "O ", "1.0")
    found = tagging.evaluate(
        [TaggedExample("1", ("a", "b", "c"), tags)], [{"tags": tagging.labels}]
    )
    assert found["f1"] == found["word_accuracy"] == 1.0


# {task: a tag}
TAGS = {"token_classification": "good"} | entries("TAGS")


@pytest.mark.parametrize("name", TAGS)
@pytest.mark.parametrize("number", [0, 1, 3])
def test_each_word_has_one_tag(name, number):
    """Otherwise those of later examples would be of other words."""
    task, tag = random_task(name)[1], TAGS[name]
    examples = [TaggedExample(f"x{n}", ("a", "b"), (tag,) * n) for n in (2, number, 2)]
    with pytest.raises(DataError, match=rf"x{number}: expected a (tag|number) for each"):
        task.read(examples)


def test_tags_that_are_numbers_need_names():
    config, kind = config_of("token_classification"), TASKS["token_classification"]
    tags = [TaggedExample("1", names, names) for names in (("0", "1", "2"), ("O", "1", "2"))]
    kind.complete_settings(config, tags[1:])
    config.task.labels = ()
    with pytest.raises(DataError, match=r"expected names of tags.* got the numbers 0, 1, 2; list"):
        kind.complete_settings(config, tags[:1])
    config.task.labels = ("0", "1", "2")
    kind.complete_settings(config, tags[:1])


@pytest.mark.parametrize(
    ("labels", "kind"),
    [([1, 0], "int"), ([1.0, 0.5], "float"), ([True, False], "bool"), (["1", "0"], "str")],
)
def test_predicted_classes_equal_labels_of_python(labels, kind, tmp_path):
    config = config_of("classification")
    examples, _ = read_task([("a", label) for label in labels], config.task)
    assert config.task.label_type == kind
    names = [example.label for example in examples]
    shares = dict(zip(names, [0.75, 0.25], strict=True))
    prediction = {"id": "1", "label": names[0], "labels": names, "probabilities": shares}
    found = with_label_type(prediction, kind)
    assert found["label"] == labels[0] and found["labels"] == labels
    assert found["probabilities"] == dict(zip(labels, [0.75, 0.25], strict=True))
    assert prediction["label"] == names[0]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"text": "a", "label": x}) + "\n" for x in labels))
    config = config_of("classification")
    assert read_task(str(path), config.task)[0] and config.task.label_type == "str"
