"""Names of columns and tasks, as inputs and outputs of exported models."""

import contextlib
import csv
import itertools
import json
import keyword
import os
import random
import re

import numpy as np
import pytest
from tensorflow.core.framework import types_pb2
from tensorflow_serving.apis import predict_pb2

from official.xlnet.api.export import export
from official.xlnet.api.predict import predict_file
from official.xlnet.data.graph_names import columns_of_inputs, graph_names
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.serving.client import endpoint
from official.xlnet.serving.factory import create_service
from tests.helpers.compare import assert_refused
from tests.helpers.served_models import mixed_texts, random_task, save_task
from tests.helpers.world import command
from tools.serving_stand_in import StandIn

VALID = re.compile("[A-Za-z][A-Za-z0-9_]*")
NAMES = (
    *("text", "Text", "text_a", "text-a", "Review Text", "#1 String", "1", "class", "None", "self"),
    *(
        "Überschrift",
        "标题",
        "正文",
        "",
        "_",
        "__init__",
        "a" * 300,
        "a" * 299 + "-",
        "é e",
        "examples",
    ),
    *("text_1_String", "token_ids", "serving_default", "id\t", "🏳️‍🌈", "x/y", "x.y", "%s"),
)


@pytest.mark.parametrize("seed", range(60))
def test_names_are_valid_distinct_and_found_again(seed):
    rng = random.Random(seed)
    names = rng.sample(NAMES, rng.randint(1, rng.choice([3, len(NAMES)])))
    inputs = graph_names(names, reserved=["examples"])
    assert len({name.lower() for name in inputs}) == len(names)
    for name, given in zip(names, inputs, strict=True):
        assert VALID.fullmatch(given) and given not in ("self", "examples")
        assert not keyword.iskeyword(given) and len(given) <= max(len(name), 80)
    before = [re.sub(r"\W", "_", name, flags=re.ASCII) for name in names]
    taken = {name.lower() for name in before} - {"self", "examples"}
    is_valid = [VALID.fullmatch(x) and not keyword.iskeyword(x) for x in before]
    if all(is_valid) and len(taken) == len(names):
        assert list(inputs) == before  # As in earlier versions.
    order = rng.sample(range(len(names)), len(names))
    columns = [*rng.sample(names, len(names)), "label of another kind"]
    found = columns_of_inputs([inputs[n] for n in order], columns, "file")
    assert found == tuple(names[n] for n in order)


@contextlib.contextmanager
def serving(base_path):
    """Flags of `predict` for a server of the exported model."""
    with contextlib.closing(StandIn(base_path, "model")) as server:
        yield f"--endpoint=localhost:{server.port}"


def predictions_of(tmp_path, *arguments):
    output = tmp_path / "predictions.jsonl"
    command("predict", *arguments, output=output)
    return [json.loads(line) for line in output.read_text().splitlines()]


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one == {
            name: pytest.approx(value, abs=2e-5, rel=1e-5) if name == "probabilities" else value
            for name, value in other.items()
        }


def write_rows(path, columns, texts, rng):
    """A table with other columns among those of the texts, in any order."""
    header = rng.sample([*columns, "id", "note to self", "label"], len(columns) + 3)
    rows = [dict(zip(columns, row, strict=True)) | {"id": f"r{n}"} for n, row in enumerate(texts)]
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, header, restval="x", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return str(path), rows


@pytest.mark.parametrize("names", itertools.permutations(("premise", "hypothesis", "note")))
def test_texts_of_standard_input_are_sent_by_name(tmp_path, monkeypatch, names):
    """In whatever order the rows have them, and the server lists its inputs."""
    rows, sent = [{name: f"{name} {n}" for name in names} for n in range(3)], []

    class Server:
        address = "localhost:1"

        def input_names(self):
            return ["hypothesis", "premise"]

        def predict(self, inputs):
            sent.append(inputs)
            return {"score": np.zeros(3)}

    monkeypatch.setattr(endpoint, "connect", lambda *_: Server())
    parts = [b"", "".join(json.dumps(row) + "\n" for row in rows).encode()]
    monkeypatch.setattr(os, "read", lambda *_: parts.pop())
    predict_file("-", str(tmp_path / "predictions.jsonl"), endpoint=Server.address)
    assert sent == [{name: [row[name] for row in rows] for name in ("hypothesis", "premise")}]


@pytest.mark.slow
def test_every_way_to_predict_reads_the_same_columns(tmp_path):
    rng, columns = random.Random(0), ("text-a", "text_a", "标题", "class", "#1 String")
    model, _ = random_task("classification", text_columns=columns)
    directory = save_task(model, str(tmp_path / "model"))
    texts = [
        [text.replace("\0", "") for text in mixed_texts(7, seed)] for seed in range(len(columns))
    ]
    path, _ = write_rows(tmp_path / "t.csv", columns, list(zip(*texts, strict=True)), rng)
    expected = predictions_of(tmp_path, f"--model={directory}", f"--input={path}")
    report = export(directory, str(tmp_path / "exported"))
    assert tuple(report["columns"].values()) == columns
    assert report["signatures"]["serving_default"]["inputs"] == sorted(report["columns"])
    with serving(str(tmp_path / "exported")) as server:
        assert_same(predictions_of(tmp_path, server, f"--input={path}"), expected)


def test_chosen_names_have_to_be_valid_and_as_many_as_the_columns(tmp_path):
    model, _ = random_task("classification", text_columns=("a", "b"))
    directory = save_task(model, str(tmp_path / "model"))
    for chosen, message in (
        (["a b", "c"], "expected different names that begin with a letter"),
        (["a", "a"], "expected different names"),
        (["a", "class"], "none of which is a keyword of Python, got a, class"),
        (["a"], "expected 2, for a, b, got a"),
    ):
        with pytest.raises(ConfigError, match=message):
            export(directory, str(tmp_path / "exported"), text_columns=chosen)


@pytest.mark.parametrize(
    ("name", "names"),
    [
        pytest.param("multiple_choice", "passage, question, choices", marks=pytest.mark.slow),
        ("token_classification", "text"),
    ],
)
def test_names_of_inputs_that_the_task_gives_are_not_chosen(tmp_path, name, names):
    directory = save_task(random_task(name)[0], str(tmp_path / "model"))
    message = f"text columns: expected {names}, as the task says, got first, second"
    assert_refused(message, create_service, directory, text_columns=["first", "second"])


@pytest.mark.parametrize("dtype", types_pb2.DataType.values())
def test_answers_of_every_type_are_arrays_or_a_sentence(dtype):
    server = endpoint.connect("localhost:1", "model", timeout_seconds=1.0, retries=0)
    answer = predict_pb2.PredictResponse()
    answer.outputs["label"].dtype = dtype
    answer.outputs["label"].tensor_shape.dim.add(size=0)
    server._call = lambda method, request: answer
    with contextlib.closing(server._channel):
        try:
            assert server.predict({"text": ["the"]})["label"].shape == (0,)
        except DataError as error:
            assert str(error).startswith("localhost:1: model 'model': expected tensors")
