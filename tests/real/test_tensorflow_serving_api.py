"""Programs with the protos and stubs of tensorflow-serving-api, as clients of an exported model."""

import json
import pathlib
import re
import subprocess
import sys
import urllib.request

import grpc
import pytest
import tensorflow as tf
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_log_pb2,
    prediction_service_pb2_grpc,
)

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


def test_an_output_filter_is_what_the_proto_says(server):
    """Names of the outputs that are wanted; an unknown or repeated one is an error."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = server.name
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(["a fine film", "dull"]))
    with grpc.insecure_channel(f"localhost:{server.port}") as channel:
        predict = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict
        wanted = {name: tf.make_ndarray(x) for name, x in predict(request).outputs.items()}
        for names in (["logits"], ["probabilities", "label"], [*wanted]):
            request.output_filter[:] = names
            found = predict(request).outputs
            assert {*found} == {*names}
            for name in names:
                assert tf.make_ndarray(found[name]).tolist() == wanted[name].tolist()
        for names in (["logit"], ["logits", "logits"]):
            request.output_filter[:] = names
            with pytest.raises(grpc.RpcError, match=r"INVALID_ARGUMENT[\s\S]*output_filter"):
                predict(request)


@pytest.mark.slow
def test_the_command_for_saved_model_cli(base_path, tmp_path):
    page = (pathlib.Path(__file__).parents[2] / "docs/serving.md").read_text()
    command = re.search(r"^python -c .*saved_model_cli.*\n(  .*\n)*", page, re.MULTILINE)[0]
    command = command.replace("exported/sst2", str(base_path)).replace("python", sys.executable, 1)
    run = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert re.search(r"Result for output key probabilities:\n\[\[[\d. ]+\]\]", run.stdout)
