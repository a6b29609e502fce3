"""Programs with the protos and stubs of tensorflow-serving-api, as clients of an exported model."""

import json
import pathlib
import re
import urllib.request

import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from tools.serving_stand_in import StandIn


@pytest.fixture(scope="module")
def base_path(world):
    return pathlib.Path(world.export("classification"))


@pytest.fixture(scope="module")
def server(base_path):
    stand_in = StandIn(str(base_path), base_path.name)
    yield stand_in
    stand_in.close()


def test_batching_and_warm_up_are_what_the_protos_say(base_path):
    # `BatchingParameters` is in no package: fields of session_bundle_config.proto.
    batching = (base_path / "batching_parameters.txt").read_text()
    names = "max_batch_size batch_timeout_micros max_enqueued_batches num_batch_threads"
    assert set(re.findall(r"(\w+) { value: \d+ }", batching)) == {*names.split()}
    records = tf.data.TFRecordDataset(f"{base_path}/1/assets.extra/tf_serving_warmup_requests")
    logs = map(prediction_log_pb2.PredictionLog.FromString, records.as_numpy_iterator())
    found = {log.predict_log.request.model_spec.signature_name for log in logs}
    assert found == {"serving_default", "token_ids", "examples"}


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
