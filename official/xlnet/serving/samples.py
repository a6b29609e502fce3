"""What lies beside the versions: configuration files of TF Serving and examples of requests."""

from __future__ import annotations

import json
import os

from official.xlnet.serving.services.base import Service

_IMAGE = "tensorflow/serving:2.20.0"
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
# Requests that come within 2 ms run together. Texts of different lengths may: the graph sorts
# them. Requests of `token_ids` must then all have one T.
_BATCHING = """\
max_batch_size { value: 32 }
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 1000 }
num_batch_threads { value: 2 }
"""
_COMPOSE = """\
services:
  {name}:
    image: {image}
    ports: ["8500:8500", "8501:8501"]
    volumes: [".:/models/{name}:ro"]
    environment: {{TF_ENABLE_ONEDNN_OPTS: "1"}}
    command:
      - --model_config_file=/models/{name}/models.config
      - --model_config_file_poll_wait_seconds=0
      - --file_system_poll_wait_seconds=5
      - --enable_batching=true
      - --batching_parameters_file=/models/{name}/batching_parameters.txt
"""
_README = """\
# {name}

A model for TF Serving, written by `xlnet export`. Each numbered directory is a version, whole
from the moment it appears; a server takes the newest. The operations of tensorflow-text that the
graph has are part of TF Serving's own binary.

    docker compose up          # docker-compose.yaml: gRPC at port 8500, REST at 8501

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

Signatures: `serving_default` takes the texts above, `examples` the same as serialized
tf.Examples, `token_ids` ids with segments (padding, on the left, is segment 4).
"""


def write_samples(output: str, service: Service) -> None:
    """Writes them into a base path, each by a rename."""
    name = os.path.basename(os.path.abspath(output))
    texts = service.sample_texts(3)
    instance = {key: value for key, (value,) in texts.items()}
    names = {"name": name, "texts": json.dumps(texts), "image": _IMAGE}
    files = {
        "models.config": _MODELS_CONFIG.format(**names),
        "batching_parameters.txt": _BATCHING,
        "docker-compose.yaml": _COMPOSE.format(**names),
        "README.md": _README.format(**names),
        "request.json": json.dumps({"instances": [instance]}, indent=1) + "\n",
    }
    for file_name, content in files.items():
        path = os.path.join(output, file_name)
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            file.write(content)
        os.replace(path + ".tmp", path)
