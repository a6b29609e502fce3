"""Requests that an export comes with, and TF Serving's configuration files.

Example requests and configuration files are written next to the versions, warmup requests into
each of them: TensorFlow optimizes a graph on its first run, so there is one for each signature and
bucket length.
"""

from __future__ import annotations

import json
import os
import re

import tensorflow as tf
import yaml
from tensorflow_serving.apis import prediction_log_pb2

from official.xlnet.files.atomic import write_bytes
from official.xlnet.serving.client.endpoint import predict_request
from official.xlnet.serving.services.base import Service

_IMAGE = "tensorflow/serving:2.20.0"
WARMUP_FILE = os.path.join("assets.extra", "tf_serving_warmup_requests")
_MODELS_CONFIG = """\
model_config_list {{
  config {{
    name: "{name}"
    base_path: "/models/{name}"
    model_platform: "tensorflow"
    model_version_policy {{ latest {{ num_versions: 1 }} }}
  }}
}}
"""
# Requests within 2 ms are batched. Texts may have different lengths, as the graph buckets them;
# requests for `token_ids` must all have the same T.
_BATCHING = """\
max_batch_size { value: 32 }
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 1000 }
num_batch_threads { value: 2 }
"""
# Not allowed in the name of a Docker service, or special in a URL, protobuf text or a shell.
_SPECIAL = re.compile(r"[^a-zA-Z0-9._-]")
_README = """\
# {name}

A model for TF Serving, written by `xlnet export`. Each numbered directory is a version, which
appears atomically; a server loads the latest one. The tensorflow-text operations in the graph are
part of the TF Serving binary.

    docker compose up          # docker-compose.yaml: gRPC on port 8500, REST on port 8501

A request over REST (`request.json`):

    curl -d @request.json http://localhost:8501/v1/models/{name}:predict

The same over gRPC, with the package tensorflow-serving-api:

    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    request = predict_pb2.PredictRequest()
    request.model_spec.name = "{name}"
    for name, value in {texts}.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    channel = grpc.insecure_channel("localhost:8500")
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    outputs = stub.Predict(request, timeout=10).outputs
    print({{name: tf.make_ndarray(value) for name, value in outputs.items()}})

Or a whole file: `xlnet predict --endpoint=localhost:8500 --name={name} --input=FILE --output=FILE`.

Signatures: `serving_default` takes the texts above, `examples` takes the same as serialized
tf.Examples, and `token_ids` takes token ids and segment ids (padding is on the left, segment 4).
"""


def served_name(output: str) -> str:
    """Returns the name of the model in the examples of a base path."""
    return _SPECIAL.sub("_", os.path.basename(os.path.abspath(output)))


def write_samples(output: str, service: Service) -> None:
    """Writes configuration files and an example request to a base path, each atomically.

    The model is served under the name of the folder, with `_` for all but ASCII letters, digits,
    `.`, `_` and `-`.

    Args:
      output: base path of the model on TF Serving.
      service: the exported service.
    """
    name = served_name(output)
    texts = service.sample_texts(3)
    instance = {key: value for key, (value,) in texts.items()}
    names = {"name": name, "texts": json.dumps(texts)}
    compose = {
        "image": _IMAGE,
        "ports": ["8500:8500", "8501:8501"],
        "volumes": [f".:/models/{name}:ro"],
        "environment": {"TF_ENABLE_ONEDNN_OPTS": "1"},
        "command": [
            f"--model_config_file=/models/{name}/models.config",
            "--model_config_file_poll_wait_seconds=0",
            "--file_system_poll_wait_seconds=5",
            "--enable_batching=true",
            f"--batching_parameters_file=/models/{name}/batching_parameters.txt",
        ],
    }
    files = {
        "models.config": _MODELS_CONFIG.format(**names),
        "batching_parameters.txt": _BATCHING,
        "docker-compose.yaml": yaml.safe_dump({"services": {name: compose}}, sort_keys=False),
        "README.md": _README.format(**names),
        "request.json": json.dumps({"instances": [instance]}, indent=1) + "\n",
    }
    for file_name, content in files.items():
        write_bytes(os.path.join(output, file_name), content.encode("utf-8", "replace"))


def write_warmup(version_dir: str, service: Service) -> int:
    """Writes TF Serving's warmup file to a version directory.

    Args:
      version_dir: directory of the version.
      service: the exported service.

    Returns:
      Number of warmup requests.
    """
    path = os.path.join(version_dir, WARMUP_FILE)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    num_requests = 0
    with tf.io.TFRecordWriter(path) as writer:
        for length in service.settings.lengths:
            for signature, inputs in _inputs(service, length).items():
                request = predict_request(signature, inputs)
                predict_log = prediction_log_pb2.PredictLog(request=request)
                log = prediction_log_pb2.PredictionLog(predict_log=predict_log)
                writer.write(log.SerializeToString(deterministic=True))
                num_requests += 1
    return num_requests


def _inputs(service: Service, length: int) -> dict[str, dict]:
    """{signature: inputs of one row of about `length` tokens}."""
    features = {}
    for name, (value,) in service.sample_texts(length).items():
        texts = value if isinstance(value, list) else [value]
        bytes_list = tf.train.BytesList(value=[text.encode() for text in texts])
        features[name] = tf.train.Feature(bytes_list=bytes_list)
    example = tf.train.Example(features=tf.train.Features(feature=features))
    inputs: dict[str, dict] = {}
    for signature in service.texts_of_signatures:
        inputs[signature] = service.sample_texts(length, signature)
    inputs["token_ids"] = service.sample_tokens(length)
    inputs["examples"] = {"examples": [example.SerializeToString(deterministic=True)]}
    return inputs
