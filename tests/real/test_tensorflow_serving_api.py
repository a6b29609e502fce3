"""Programs with the protos and stubs of tensorflow-serving-api, as clients of an exported model."""

import json
import pathlib
import re
import urllib.request

import grpc
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.apis import (
    model_management_pb2,  # noqa: F401  Registers what the configuration refers to.
    predict_pb2,
    prediction_log_pb2,
    prediction_service_pb2_grpc,
)
from tensorflow_serving.config import model_server_config_pb2

from official import xlnet
from tools.serving_stand_in import StandIn


@pytest.fixture(scope="module")
def base_path(world):
    return pathlib.Path(world.export("classification"))


@pytest.fixture(scope="module")
def server(base_path):
    stand_in = StandIn(str(base_path), base_path.name)
    yield stand_in
    stand_in.close()


@pytest.fixture(scope="module")
def stub(server):
    with grpc.insecure_channel(f"localhost:{server.port}") as channel:
        yield prediction_service_pb2_grpc.PredictionServiceStub(channel)


def request_of(name, signature, **inputs):
    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = name, signature
    for key, value in inputs.items():
        request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
    return request


def test_sample_configurations_and_warm_up_are_what_the_protos_say(base_path):
    text = (base_path / "models.config").read_text()
    config = text_format.Parse(text, model_server_config_pb2.ModelServerConfig())
    [model] = config.model_config_list.config
    assert (model.name, model.base_path) == (base_path.name, f"/models/{base_path.name}")
    # `BatchingParameters` is in no package: fields of session_bundle_config.proto.
    batching = (base_path / "batching_parameters.txt").read_text()
    names = "max_batch_size batch_timeout_micros max_enqueued_batches num_batch_threads"
    assert set(re.findall(r"(\w+) { value: \d+ }", batching)) == {*names.split()}
    records = tf.data.TFRecordDataset(f"{base_path}/1/assets.extra/tf_serving_warmup_requests")
    logs = map(prediction_log_pb2.PredictionLog.FromString, records.as_numpy_iterator())
    found = {log.predict_log.request.model_spec.signature_name for log in logs}
    assert found == {"serving_default", "token_ids", "examples"}


def test_a_stub_gets_the_predictions_of_the_model(base_path, stub, world):
    texts = ["the time of year", "", "a new house of people and war"]
    answer = stub.Predict(request_of(base_path.name, "serving_default", text=texts), timeout=60)
    found = tf.make_ndarray(answer.outputs["probabilities"])
    rows = xlnet.predict(world.task("classification").model, texts)
    expected = [list(row["probabilities"].values()) for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-5)


IDS, SEGMENTS = np.array([[9, 4, 3]], np.int32), np.array([[0, 0, 2]], np.int32)


@pytest.mark.parametrize(
    ("signature", "inputs", "message"),
    [
        ("serving_default", {"text": [1, 2]}, "expects string, got int32"),
        ("serving_default", {}, "missing but required: ['text']"),
        ("serving_default", {"text": [["a"]]}, "shape"),
        ("serving_default", {"text": ["a" * 1_000_000]}, "up to 200000 characters, got 1000000"),
        ("token_ids", {"token_ids": IDS + 999, "segment_ids": SEGMENTS}, "from 0 to 210, got 1008"),
        ("token_ids", {"token_ids": IDS}, "missing but required: ['segment_ids']"),
        ("examples", {"examples": ["no example" * 9999]}, "parse"),  # The error has it, too.
    ],
)
def test_bad_requests_are_invalid_arguments(base_path, stub, signature, inputs, message):
    with pytest.raises(grpc.RpcError) as caught:
        stub.Predict(request_of(base_path.name, signature, **inputs), timeout=60)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert message in caught.value.details()


def test_examples_of_requests_beside_the_versions_work(base_path, server, capfd):
    body = (base_path / "request.json").read_bytes()
    url = f"http://localhost:{server.rest_port}/v1/models/{base_path.name}:predict"
    with urllib.request.urlopen(urllib.request.Request(url, body)) as response:
        [prediction] = json.load(response)["predictions"]
    assert set(prediction) == {"label", "labels", "logits", "probabilities"}
    readme = (base_path / "README.md").read_text()
    code = re.search(r"^    import grpc\n(    .*\n|\n)+", readme, re.MULTILINE)[0]
    exec(re.sub("^    ", "", code, flags=re.MULTILINE).replace("8500", str(server.port)), {})
    assert prediction["label"] in capfd.readouterr().out
