"""Wrong requests by the hundred: to a server, to the signatures of every export, and in Python.

A wrong request is answered with INVALID_ARGUMENT (over REST with status 400 or 404) and changes
nothing: the answer to the good request stays what it was. A request that is not refused gives
finite numbers, and each of its rows what the row alone gives; for plain texts, what offline
prediction gives. Answers of a server that are wrong end `xlnet predict --endpoint` with one
sentence. Wrong arguments in Python raise ConfigError or DataError. Part of `make fuzz`.
"""

import collections
import functools
import http.server
import json
import pathlib
import subprocess
import sys
import threading
import time

import grpc
import numpy as np
import psutil
import pytest
import tensorflow as tf
import urllib3
from hypothesis import given
from hypothesis import strategies as st
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_service_pb2_grpc,
)

from official import xlnet
from official.xlnet.api.plain_examples import labelled_examples, unlabelled_examples
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import XLNetError
from official.xlnet.inference.task_prediction import predict_examples
from official.xlnet.serving.export import write_version
from official.xlnet.serving.factory import task_service
from official.xlnet.serving.graph.settings import Settings
from official.xlnet.serving.services.encoder import EncoderService
from official.xlnet.serving.services.language_model import LanguageModelService
from tests.helpers.served_models import (
    examples_of,
    inputs_of,
    mixed_texts,
    random_task,
    tokenizers,
)
from tests.helpers.small_language_model import random_model
from tests.helpers.tiny import tiny_encoder
from tests.helpers.wrong.arguments import WRONG
from tests.helpers.wrong.files import changed_file, changed_tree
from tests.helpers.wrong.promises import IS_LONG, MOST_BYTES, SECONDS, report, run, tried
from tests.helpers.wrong.requests import changed_inputs, changed_tensor
from tests.helpers.wrong_input import PRETRAINING, strict_json
from tools.serving_stand_in import RequestError, Version

NAME = "fuzz"
MOST_CHARACTERS = 5000
INVALID, UNKNOWN = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION
KINDS = ["token_classification", "question_answering", "multiple_choice"]
LENGTHS = (11, 23) if IS_LONG else (23,)  # A graph each.
if IS_LONG:
    KINDS += ["classification", "multi_label", "regression", "ranking", "encoder", "lm"]


def export(name, folder):
    """Writes a version of a kind of model; returns its path."""
    settings = Settings(LENGTHS, max_characters=MOST_CHARACTERS, max_windows=7)
    tokenizer, graph = tokenizers()
    if name == "encoder":
        service = EncoderService(tiny_encoder(vocab_size=211), graph, settings)
    elif name == "lm":
        pieces = [tokenizer.id_to_piece(i) for i in range(211)]
        service = LanguageModelService(random_model(vocab_size=211), pieces, graph, settings)
    else:
        task = {"query_length": 5, "window_stride": 5} if name == "question_answering" else {}
        service = task_service(random_task(name, **task)[0], graph, settings)
    return write_version(service, str(folder / name))["path"], service


def good_requests(name, service):
    """{signature: {input: array}} of a kind of model, three rows each."""
    inputs = {"text": mixed_texts(12)[9:]}
    if name not in ("encoder", "lm"):
        inputs = inputs_of(examples_of(name, 12)[-3:])
    texts = {
        key: np.vectorize(str.encode, otypes=[object])(np.array(value, object))
        for key, value in inputs.items()
    }
    features = [
        {
            key: tf.train.Feature(bytes_list=tf.train.BytesList(value=np.atleast_1d(value[row])))
            for key, value in texts.items()
        }
        for row in range(3)
    ]
    examples = [tf.train.Example(features=tf.train.Features(feature=each)) for each in features]
    rows = [example.SerializeToString() for example in examples]
    tokens = {key: np.asarray(value) for key, value in service.sample_tokens(7).items()}
    tokens = {key: np.concatenate([value] * 3) for key, value in tokens.items()}
    return {
        "serving_default": texts,
        "token_ids": tokens,
        "examples": {"examples": np.array(rows, object)},
    }


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """A function from a kind to (loaded version, good requests, answers to them so far)."""
    folder = tmp_path_factory.mktemp("versions")

    @functools.cache
    def version_of(kind):
        path, service = export(kind, folder)
        return Version(path), good_requests(kind, service), {}

    return version_of


def check_rows(version, signature, inputs, outputs):
    """Finite numbers; and each of a few rows as the row alone."""
    for name, value in outputs.items():
        assert value.dtype == object or np.isfinite(value).all(), name
    number = len(next(iter(inputs.values())))
    assert all(len(value) == number for value in outputs.values())
    for row in range(min(number, 2)):
        alone = {name: value[row : row + 1] for name, value in inputs.items()}
        answer = version.predict(signature, alone)
        for name, value in answer.items():
            if name == "choice":  # Of equally probable choices, any may be the best.
                probabilities = outputs["probabilities"][row]
                same(probabilities[value[0]], probabilities.max())
            elif np.shape(value[0]) == np.shape(
                outputs[name][row]
            ):  # Not padded to the longest row.
                same(value[0], outputs[name][row])


def same(found, expected):
    if np.asarray(found).dtype == object or isinstance(found, bytes):
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_signatures(versions):
    """The signatures of an export, called with wrong inputs."""
    counts = collections.Counter()

    @tried(share=0.1)
    @given(st.data())
    def check(data):
        kind = data.draw(st.sampled_from(KINDS), label="kind")
        version, requests, answers = versions(kind)
        signature = data.draw(st.sampled_from(sorted(requests)), label="signature")
        if signature not in answers:
            answers[signature] = version.predict(signature, requests[signature])
        inputs = data.draw(changed_inputs(requests[signature]), label="inputs")
        start = time.monotonic()
        try:
            outputs = version.predict(signature, inputs)
            check_rows(version, signature, inputs, outputs)
            counts[f"{kind}: answered"] += 1
        except RequestError as error:
            assert error.code == INVALID, error
            counts[f"{kind}: refused"] += 1
        assert time.monotonic() - start < SECONDS
        again = version.predict(signature, requests[signature])
        for name, value in answers[signature].items():
            same(again[name], value)

    check()
    report(counts)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """(the process of a server, its ports, offline prediction of a list of texts)."""
    folder = tmp_path_factory.mktemp("server")
    path, _ = export("classification", folder)
    model, task = random_task("classification")

    def offline(texts):
        examples = [TextExample(str(n), (text,)) for n, text in enumerate(texts)]
        found = predict_examples(model, task, examples)
        return np.array([list(row["probabilities"].values()) for row in found])

    arguments = [f"--base_path={pathlib.Path(path).parent}", f"--name={NAME}"]
    process = psutil.Popen(
        [sys.executable, "-m", "tools.serving_stand_in", *arguments]
        + ["--port=0", "--rest_api_port=0"],
        stdout=subprocess.PIPE,
    )
    yield process, json.loads(process.stdout.readline()), offline
    assert process.poll() is None
    process.terminate()
    process.wait()


def texts_of(inputs):
    """The texts of a good request, decoded as the server reads them; None for any other."""
    value = inputs.get("text")
    if list(inputs) != ["text"] or value.ndim != 1 or value.dtype != object or not len(value):
        return None
    return [text.decode("utf-8", "replace") for text in value]


def test_requests_over_grpc(server):
    process, ports, offline = server
    stub = prediction_service_pb2_grpc.PredictionServiceStub(
        grpc.insecure_channel(f"localhost:{ports['port']}")
    )
    good = np.array([text.encode() for text in mixed_texts(12)[9:]], object)
    expected = offline([text.decode() for text in good])
    counts = collections.Counter()

    def send(inputs, signature="serving_default", name=NAME, version=0, change=lambda proto: proto):
        request = predict_pb2.PredictRequest()
        request.model_spec.name, request.model_spec.signature_name = name, signature
        if version:
            request.model_spec.version.value = version
        for key, value in inputs.items():
            request.inputs[key].CopyFrom(change(tf.make_tensor_proto(value)))
        response = stub.Predict(request, timeout=SECONDS)
        return tf.make_ndarray(response.outputs["probabilities"])

    @tried(share=0.05)
    @given(st.data())
    def check(data):
        inputs = data.draw(changed_inputs({"text": good}))
        signature = data.draw(st.sampled_from(["serving_default"] * 8 + ["examples", "x", "\0"]))
        name = data.draw(st.sampled_from([NAME] * 9 + ["", "../fuzz", "é" * 99]))
        version = data.draw(st.sampled_from([0] * 9 + [1, 2, -1, 2**63 - 1]))
        is_changed = []

        def change(proto):
            before = proto.SerializeToString()
            changed = data.draw(changed_tensor(proto))
            is_changed.append(changed.SerializeToString() != before)
            return changed

        try:
            found = send(inputs, signature, name, version, change)
            assert np.isfinite(found).all()
            texts = texts_of(inputs)
            if texts and signature == "serving_default" and not any(is_changed):
                np.testing.assert_allclose(found, offline(texts), atol=1e-5)
            counts["answered"] += 1
        except grpc.RpcError as error:
            codes = {INVALID}
            codes |= {grpc.StatusCode.NOT_FOUND} if name != NAME or version else set()
            codes |= {UNKNOWN} if signature in ("x", "\0") else set()
            assert error.code() in codes, error
            counts[error.code().name] += 1
        np.testing.assert_allclose(send({"text": good}), expected, atol=1e-5)

    check()
    assert process.memory_info().rss < MOST_BYTES
    report(counts)


def test_requests_over_rest(server):
    process, ports, offline = server
    pool = urllib3.PoolManager(retries=False)
    texts = mixed_texts(12)[9:]
    expected = offline(texts)
    bodies = [
        {"inputs": {"text": texts}},
        {"instances": [{"text": text} for text in texts]},
        {"instances": texts, "signature_name": "serving_default"},
        {"inputs": {"text": [{"b64": "dGhl"}]}},
        {"inputs": {"token_ids": [[9, 4, 3]], "segment_ids": [[0, 0, 2]]}},
    ]
    bodies[-1]["signature_name"] = "token_ids"
    good_path = f"/v1/models/{NAME}:predict"
    paths = [good_path] * 12 + [
        *(f"/v1/models/{NAME}/versions/{n}:predict" for n in (1, 2, "x", "9" * 99)),
        *("/", "/v1/models/:predict", f"/v1/models/{NAME}", "/v1/models/../x:predict"),
        *(f"/v1/models/{NAME}:classify", f"/v1/models/{NAME}/metadata", "/v1/models/%00:predict"),
    ]
    counts = collections.Counter()

    def send(body, path=good_path):
        url = f"http://localhost:{ports['rest_port']}{path}"
        response = pool.request("POST", url, body=body, timeout=SECONDS)
        return response.status, response.data

    @tried(share=0.05)
    @given(st.data())
    def check(data):
        body = json.dumps(data.draw(st.sampled_from(bodies))).encode()
        body = data.draw(changed_file("body.json", body), label="body")
        path = data.draw(st.sampled_from(paths), label="path")
        status, answer = send(body, path)
        assert status in (200, 400, 404), answer
        tree = strict_json(answer.decode())
        assert (status == 200) == ("error" not in tree), answer
        counts[f"status {status}"] += 1
        status, answer = send(json.dumps(bodies[0]).encode())
        found = strict_json(answer.decode())["outputs"]["probabilities"]
        np.testing.assert_allclose(found, expected, atol=1e-5)

    check()
    assert process.memory_info().rss < MOST_BYTES
    report(counts)


METADATA = {
    "model_spec": {"name": NAME, "signature_name": "", "version": "1"},
    "metadata": {
        "signature_def": {
            "signature_def": {
                "serving_default": {
                    "inputs": {"text": {"dtype": "DT_STRING", "name": "text:0"}},
                    "outputs": {"label": {}, "labels": {}, "probabilities": {}},
                    "method_name": "tensorflow/serving/predict",
                }
            }
        }
    },
}
ANSWER = {
    "outputs": {
        "label": ["a", "b"],
        "labels": [["a", "b"], ["a", "b"]],
        "probabilities": [[0.7, 0.3], [0.4, 0.6]],
    }
}


def test_answers(tmp_path, capfd):
    """A server that answers `xlnet predict` with something else than what was agreed."""
    answers = {"GET": b"", "POST": b""}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(answers[self.command])))
            self.end_headers()
            self.wfile.write(answers[self.command])

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *arguments):
            pass

    counts = collections.Counter()
    (tmp_path / "rows.jsonl").write_text('{"text": "the"}\n{"text": "of"}\n')
    with http.server.ThreadingHTTPServer(("localhost", 0), Handler) as stranger:
        threading.Thread(target=stranger.serve_forever, daemon=True).start()
        arguments = [
            *("predict", f"--endpoint=http://localhost:{stranger.server_address[1]}"),
            *(f"--input={tmp_path}/rows.jsonl", f"--output={tmp_path}/out.jsonl", "--retries=0"),
        ]

        @tried(share=0.03)
        @given(st.data())
        def check(data):
            answers["GET"], answers["POST"] = (
                json.dumps(METADATA).encode(),
                json.dumps(ANSWER).encode(),
            )
            method = data.draw(st.sampled_from(["GET", "POST"]))
            answers[method] = data.draw(changed_file("answer.json", answers[method]))
            (tmp_path / "out.jsonl").unlink(missing_ok=True)
            status, _ = run(capfd, arguments)
            counts[f"status {status}"] += 1
            assert (tmp_path / "out.jsonl").exists() == (status == 0)
            if status == 0:
                for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines():
                    strict_json(line)

        check()
        stranger.shutdown()
    report(counts)


def calls():
    """{name: (function, its good arguments)} of the Python API, with models that are loaded."""
    tokenizer = tokenizers()[0]
    language, encoder = random_model(vocab_size=211), tiny_encoder(vocab_size=211)
    task = random_task("classification")[1].config.task
    loaded = {"tokenizer": tokenizer}
    return {
        "score": (xlnet.score, {"model": language, "texts": ["the", "of"], **loaded}),
        "score random": (
            xlnet.score,
            {"model": language, "texts": "the", "order": "random", "num_orders": 2, "seed": 1}
            | loaded,
        ),
        "generate": (
            xlnet.generate,
            {"model": language, "prompts": ["the"], "num_tokens": 2, **loaded},
        ),
        "fill_blanks": (
            xlnet.fill_blanks,
            {"model": language, "texts": "the ____ of", "max_length": 1, **loaded},
        ),
        "embed": (
            xlnet.embed,
            {"model": encoder, "texts": ["the", ""], "pooling": "mean", "layer": -1}
            | {"max_length": 11, "batch_size": 2, **loaded},
        ),
        "tokenizer": (
            tokenizer,
            {"texts": ["the"], "pairs": ["of"], "max_length": 7, "padding": "longest"}
            | {"truncation": "longest_first"},
        ),
        "sampling": (xlnet.Sampling, {"temperature": 1.0, "top_k": 2, "top_p": 0.5, "seed": 1}),
        "config": (xlnet.XLNetConfig.from_dict, {"tree": PRETRAINING}),
        "labelled": (labelled_examples, {"rows": [("the", "good"), ("of", "bad")], "task": task}),
        "unlabelled": (unlabelled_examples, {"inputs": ["the", "of"], "task": task}),
    }


def test_python(capfd):
    """Arguments of the Python API made wrong: a result, or an exception that says what is wrong."""
    counts, known = collections.Counter(), calls()

    @tried(share=0.05)
    @given(st.data())
    def check(data):
        name = data.draw(st.sampled_from(sorted(known)), label="function")
        function, arguments = known[name]
        key = data.draw(st.sampled_from(sorted(set(arguments) - {"model", "tokenizer", "task"})))
        if isinstance(arguments[key], dict):
            value = data.draw(changed_tree(arguments[key]), label=key)
        else:
            value = data.draw(st.sampled_from(WRONG), label=key)
        try:
            function(**{**arguments, key: value})
            counts[f"{name}: done"] += 1
        except XLNetError as error:
            assert str(error) and "\n" not in str(error)
            counts[f"{name}: {type(error).__name__}"] += 1

    check()
    report(counts)
