"""Exported models in processes and servers that know nothing of this package."""

import contextlib
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import urllib.request

import grpc
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_log_pb2,
    prediction_service_pb2_grpc,
)

from official.xlnet import cli
from official.xlnet.errors import DataError
from official.xlnet.inference.task_prediction import predict_examples
from official.xlnet.serving import export as exporting
from official.xlnet.serving.client.endpoint import connect
from tests.helpers.served_models import (
    examples_of,
    mixed_texts,
    random_task,
    save_task,
    service_of,
)
from tests.helpers.task_corpora import write_table
from tools.serving_stand_in import StandIn

NAME = "tone"
HELPERS = pathlib.Path(__file__).parents[1] / "helpers"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """(model directory, base path with version 1, task model, Python task)."""
    root = tmp_path_factory.mktemp("serving")
    model, task = random_task("classification")
    model_dir = save_task(model, str(root / "model"))
    base_path = str(root / NAME)
    assert cli.main(["export", f"--model={model_dir}", f"--output={base_path}"]) == 0
    return model_dir, base_path, model, task


@pytest.fixture(scope="module")
def service():
    """The service of another model, whose graph is traced once."""
    return service_of(random_task("classification", seed=1)[0], lengths=(23,))


@pytest.fixture(scope="module")
def server(folders):
    stand_in = StandIn(folders[1], NAME, poll_seconds=0.1)
    yield stand_in
    stand_in.close()


def probabilities_of(predictions):
    return np.array([list(p["probabilities"].values()) for p in predictions])


def keras_probabilities(model, task, texts):
    """float32 [B, C] from the Keras model, with the Python tokenizer."""
    from official.xlnet.data.examples import TextExample

    examples = [TextExample(str(n), (text,)) for n, text in enumerate(texts)]
    outputs = []
    original = task.predict
    task.predict = lambda example, units: outputs.append(units[0]["logits"])
    try:
        list(predict_examples(model, task, examples))
    finally:
        task.predict = original
    return tf.nn.softmax(np.stack(outputs)).numpy()


def real_texts(number):
    from tests.helpers.oracles.tokenizer_oracle import real_lines

    texts = real_lines(number - 30) + mixed_texts(26)
    return [*texts, "é" * 100_000, "the of " * 14_286, "", "😀" * 99]


def test_last_line_and_files(folders, capfd):
    model_dir, base_path, _, _ = folders
    capfd.readouterr()
    other = base_path + "-other"
    arguments = [f"--model={model_dir}", f"--output={other}", "--version=7", "--buckets=11,17"]
    assert cli.main(["export", *arguments, "--weights=int8"]) == 0
    figures = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert figures["path"] == os.path.join(other, "7")
    assert set(figures["signatures"]) == {"serving_default", "token_ids", "examples"}
    assert figures["signatures"]["serving_default"]["inputs"] == ["text"]
    assert figures["signatures"]["examples"]["inputs"] == ["examples"]
    names = {"models.config", "batching_parameters.txt", "docker-compose.yaml", "README.md"}
    assert set(os.listdir(other)) == {"7", "request.json"} | names
    assert cli.main(["export", *arguments]) == 2
    assert "exists" in capfd.readouterr().err
    warmup = os.path.join(other, "7", "assets.extra", "tf_serving_warmup_requests")
    logs = [
        prediction_log_pb2.PredictionLog.FromString(record)
        for record in tf.data.TFRecordDataset(warmup).as_numpy_iterator()
    ]
    found = [log.predict_log.request.model_spec.signature_name for log in logs]
    assert sorted(found) == sorted(["serving_default", "token_ids", "examples"] * 2)


def test_sample_configurations_are_what_the_protos_say(folders):
    _, base_path, _, _ = folders
    read = lambda name: pathlib.Path(base_path, name).read_text()  # noqa: E731
    from tensorflow_serving.apis import model_management_pb2  # noqa: F401
    from tensorflow_serving.config import model_server_config_pb2

    config = text_format.Parse(read("models.config"), model_server_config_pb2.ModelServerConfig())
    [model] = config.model_config_list.config
    assert (model.name, model.base_path) == (NAME, f"/models/{NAME}")
    # `BatchingParameters` is in no package: fields of session_bundle_config.proto.
    batching = dict(re.findall(r"(\w+) { value: (\d+) }", read("batching_parameters.txt")))
    assert set(batching) == {
        "max_batch_size",
        "batch_timeout_micros",
        "max_enqueued_batches",
        "num_batch_threads",
    }


def test_fresh_process_gives_the_scores_of_keras(folders, tmp_path):
    """XLNET_BARE_PYTHON may name an interpreter with tensorflow and tensorflow-text alone."""
    _, base_path, model, task = folders
    texts = real_texts(500)
    assert len(texts) == 500
    cuts = [0, 1, 8, 200, 500]
    batches = [{"text": texts[a:b]} for a, b in itertools.pairwise(cuts)]
    (tmp_path / "batches.json").write_text(json.dumps(batches))
    ours = ("PYTHONPATH", "TF_USE_LEGACY_KERAS")  # What a server does not have.
    environment = {k: v for k, v in os.environ.items() if k not in ours}
    arguments = [f"{base_path}/1", tmp_path / "batches.json", tmp_path / "outputs.npz"]
    subprocess.run(
        [
            os.environ.get("XLNET_BARE_PYTHON", sys.executable),
            HELPERS / "fresh_client.py",
            *arguments,
        ],
        check=True,
        cwd=tmp_path,
        env=environment,
    )
    outputs = np.load(tmp_path / "outputs.npz")
    found = [outputs[f"{n}/probabilities"] for n in range(len(batches))]
    expected = keras_probabilities(model, task, texts)
    np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-5)
    assert np.ptp(expected, axis=0).max() > 0.1


@pytest.mark.slow
@pytest.mark.slow
def test_c_library_gives_the_scores_of_keras(folders, tmp_path):
    _, base_path, model, task = folders
    texts = [text for text in real_texts(500) if "\0" not in text]
    version = f"{base_path}/1"
    tensorflow = pathlib.Path(tf.__file__).parent
    operations = tensorflow.parent / "tensorflow_text/python/ops/_fast_sentencepiece_tokenizer.so"
    saved = saved_model_pb2.SavedModel.FromString(
        pathlib.Path(version, "saved_model.pb").read_bytes()
    )
    signature = saved.meta_graphs[0].signature_def["serving_default"]
    info = signature.outputs["probabilities"].name.split(":")
    request = {
        "libraries": [
            str(tensorflow / f"libtensorflow_{part}.so.2") for part in ("framework", "cc")
        ],
        "operations": [str(operations)],
        "model": version,
        "input": signature.inputs["text"].name,
        "outputs": {"probabilities": [info[0], int(info[1])]},
        "texts": texts,
    }
    (tmp_path / "request.json").write_text(json.dumps(request))
    done = subprocess.run(
        [sys.executable, "-I", HELPERS / "c_api_client.py", tmp_path / "request.json"],
        check=True,
        stdout=subprocess.PIPE,
    )
    found = json.loads(done.stdout.splitlines()[-1])["probabilities"]
    expected = keras_probabilities(model, task, texts)
    np.testing.assert_allclose(np.reshape(found, expected.shape), expected, atol=1e-5)


def test_predict_with_an_endpoint(folders, server, tmp_path, capfd):
    model_dir, _, _, _ = folders
    rows = [(text.replace("\t", " ").replace("\n", " "),) for text in mixed_texts(41)]
    source = write_table(tmp_path / "rows.jsonl", ("text",), rows)
    endpoint = (f"--name={NAME}", "--batch_size=7")
    found = {}
    for name, arguments in (
        ("model", [f"--model={model_dir}"]),
        ("grpc", [f"--endpoint=localhost:{server.port}", *endpoint]),
        ("rest", [f"--endpoint=http://localhost:{server.rest_port}", *endpoint]),
    ):
        output = tmp_path / f"{name}.jsonl"
        arguments += [f"--input={source}", f"--output={output}"]
        assert cli.main(["predict", *arguments]) == 0, capfd.readouterr().err
        assert json.loads(capfd.readouterr().out.splitlines()[-1])["rows"] == 41
        found[name] = [json.loads(line) for line in output.read_text().splitlines()]
    for remote in (found["grpc"], found["rest"]):
        for here, there in zip(found["model"], remote, strict=True):
            assert (here["id"], here["label"]) == (there["id"], there["label"])
            assert here["probabilities"] == pytest.approx(there["probabilities"], abs=1e-5)


def test_bad_requests_are_invalid_arguments(server):
    stub = prediction_service_pb2_grpc.PredictionServiceStub(
        grpc.insecure_channel(f"localhost:{server.port}")
    )
    ids = {"token_ids": np.array([[9, 4, 3]], np.int32), "segment_ids": np.array([[0, 0, 2]])}
    ids["segment_ids"] = ids["segment_ids"].astype(np.int32)
    for signature, inputs, message in (
        ("serving_default", {"text": [1, 2]}, "expects string, got int32"),
        ("serving_default", {}, "missing but required: ['text']"),
        ("serving_default", {"text": [["a"]]}, "shape"),
        ("serving_default", {"text": ["a" * 1_000_000]}, "up to 200000 characters, got 1000000"),
        ("token_ids", ids | {"token_ids": ids["token_ids"] + 999}, "ids from 0 to 210, got 1008"),
        ("token_ids", {"token_ids": ids["token_ids"]}, "missing but required: ['segment_ids']"),
        ("examples", {"examples": ["no example"]}, "parse"),
        ("examples", {"examples": ["no example " * 9999]}, "parse"),  # The error has it, too.
    ):
        request = predict_pb2.PredictRequest()
        request.model_spec.name, request.model_spec.signature_name = NAME, signature
        for name, value in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
        with pytest.raises(grpc.RpcError) as caught:
            stub.Predict(request, timeout=60)
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert message in caught.value.details()
    good = connect(f"localhost:{server.port}", NAME).predict({"text": ["the"]})
    assert good["probabilities"].shape == (1, 3)
    rest = connect(f"http://localhost:{server.rest_port}", NAME)
    for wrong in ({"text": [1]}, {"text": [["a"], "b"]}, {"words": ["a"]}):
        with pytest.raises(DataError, match="HTTP 400"):
            rest.predict(wrong)


def test_examples_of_requests_work(folders, server, capfd):
    """What README.md and request.json beside the versions say."""
    _, base_path, _, _ = folders
    body = pathlib.Path(base_path, "request.json").read_bytes()
    url = f"http://localhost:{server.rest_port}/v1/models/{NAME}:predict"
    with urllib.request.urlopen(urllib.request.Request(url, body)) as response:
        [prediction] = json.load(response)["predictions"]
    assert set(prediction) == {"label", "labels", "logits", "probabilities"}
    readme = pathlib.Path(base_path, "README.md").read_text()
    code = re.search(r"^    import grpc\n(    .*\n|\n)+", readme, re.MULTILINE)[0]
    capfd.readouterr()
    exec(re.sub("^    ", "", code, flags=re.MULTILINE).replace("8500", str(server.port)), {})
    printed = capfd.readouterr().out
    assert prediction["label"] in printed


def test_a_new_version_takes_over_without_a_failed_request(folders, service, server):
    _, base_path, _, _ = folders
    endpoint = connect(f"localhost:{server.port}", NAME, retries=0)
    texts, stop, failures, seen = mixed_texts(7), threading.Event(), [], set()

    def load():
        while not stop.is_set():
            try:
                endpoint.predict({"text": texts})
                seen.add(server.version.number)
            except Exception as error:  # Any failure at all is one too many.
                failures.append(error)
            stop.wait(0.05)

    clients = [threading.Thread(target=load) for _ in range(2)]
    for client in clients:
        client.start()
    watched, complete = threading.Event(), []

    def watch():
        while not watched.is_set():
            for name in os.listdir(base_path):
                if name.isdigit():
                    files = {"saved_model.pb", "variables", "assets.extra"}
                    complete.append(files <= set(os.listdir(os.path.join(base_path, name))))
            watched.wait(0.005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    exporting.write_version(service, base_path)
    for _ in range(600):
        if 2 in seen:
            break
        stop.wait(0.1)
    stop.set()
    watched.set()
    for thread in (*clients, watcher):
        thread.join()
    assert not failures and seen == {1, 2} and all(complete)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(os.path.join(base_path, "2"))


@pytest.mark.slow
def test_answers_over_rest(tmp_path, capfd):
    """The same predictions as here, from SQuAD's file."""
    model, task = random_task("question_answering", query_length=5, window_stride=5)
    exporting.write_version(service_of(model, lengths=(23,)), str(tmp_path / "answers"))
    examples = [e for e in examples_of("question_answering", 17) if e.context.strip("\0 \t\n")]
    squad = {
        "data": [
            {
                "title": "t",
                "paragraphs": [
                    {
                        "context": e.context,
                        "qas": [{"id": e.id, "question": e.question, "answers": []}],
                    }
                    for e in examples
                ],
            }
        ]
    }
    (tmp_path / "squad.json").write_text(json.dumps(squad))
    stand_in = StandIn(str(tmp_path / "answers"), "answers")
    try:
        output = tmp_path / "out.jsonl"
        endpoint = f"--endpoint=http://localhost:{stand_in.rest_port}"
        arguments = [endpoint, "--name=answers", f"--output={output}", "--batch_size=5"]
        source = f"--input={tmp_path / 'squad.json'}"
        assert cli.main(["predict", source, *arguments]) == 0, capfd.readouterr().err
    finally:
        stand_in.close()
    found = [json.loads(line) for line in output.read_text().splitlines()]
    for there, here in zip(found, predict_examples(model, task, examples), strict=True):
        assert (there["id"], there["answer"]) == (here["id"], here["answer"])
        assert there["null_score"] == pytest.approx(here["no_answer_score"], abs=1e-5)


@pytest.mark.slow
def test_bulk(folders, tmp_path, capfd):
    _, base_path, model, task = folders
    texts = mixed_texts(23)
    rows = [{"id": n, "text": text} for n, text in enumerate(texts)]
    lines = [json.dumps(row) for row in rows] + ['{"words": "a"}', "no json", '{"text": 7}']
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    arguments = [f"--saved_model={base_path}/1", f"--input={tmp_path}/in*.jsonl"]
    assert cli.main(["predict", *arguments, f"--output={tmp_path}/out"]) == 0
    figures = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert (figures["rows"], figures["wrong_rows"]) == (23, 3)

    def read(prefix):
        paths = sorted(tmp_path.glob(f"{prefix}-0*.jsonl"))
        return [json.loads(x) for path in paths for x in path.read_text().splitlines()]

    found = sorted(read("out"), key=lambda row: row["id"])
    expected = keras_probabilities(model, task, texts)
    np.testing.assert_allclose(probabilities_of(found), expected, atol=1e-5)
    assert len(read("out-wrong")) == 3


@pytest.mark.slow
def test_bulk_reports_lines_and_options_that_are_wrong(folders, tmp_path, capfd):
    (tmp_path / "in.jsonl").write_bytes(b'{"text": "the"}\n{"text": "\xff"}\n\n{"text": null}\n')
    arguments = [f"--saved_model={folders[1]}/1", f"--input={tmp_path}/in.jsonl"]
    arguments.append(f"--output={tmp_path}/out")
    assert cli.main(["predict", *arguments]) == 0
    figures = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert (figures["rows"], figures["wrong_rows"]) == (1, 3)
    assert cli.main(["predict", *arguments, "--beam_options=--runner=NoSuchRunner"]) == 2
    assert "Beam cannot use --runner=NoSuchRunner" in capfd.readouterr().err
    for name, content, message in (
        ("t.CSV.gz", "text\nthe\n", "expected JSON lines for --saved_model, got a table"),
        ("t.jsonl", '{"txt": "the"}\nno\n', "expected valid rows, got none: 2 invalid rows"),
    ):
        (tmp_path / name).write_text(content)
        arguments[1] = f"--input={tmp_path}/{name}"
        assert cli.main(["predict", *arguments]) == 2
        assert message in capfd.readouterr().err


@pytest.mark.slow
def test_soak():
    """Half a minute of what `benchmarks.serving.soak` does in twenty."""
    command = [sys.executable, "-m", "benchmarks.serving.soak", "--minutes=0.5"]
    done = subprocess.run([*command, "--roll_seconds=10"], stdout=subprocess.PIPE, check=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["good"] > 20 and figures["bad"] > 5 and figures["versions"] > 1
