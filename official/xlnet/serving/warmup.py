"""SavedModel warmup requests for TF Serving.

TensorFlow optimizes a graph on its first run, so there is one request for each signature and
bucket length.
"""

from __future__ import annotations

import os

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from official.xlnet.serving.services.base import Service

WARMUP_FILE = os.path.join("assets.extra", "tf_serving_warmup_requests")


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
    logs = [
        prediction_log_pb2.PredictionLog(
            predict_log=prediction_log_pb2.PredictLog(request=_request(signature, inputs))
        )
        for length in service.settings.lengths
        for signature, inputs in _inputs(service, length).items()
    ]
    with tf.io.TFRecordWriter(path) as writer:
        for log in logs:
            writer.write(log.SerializeToString(deterministic=True))
    return len(logs)


def _inputs(service: Service, length: int) -> dict[str, dict]:
    texts = service.sample_texts(length)
    features = {}
    for name, (value,) in texts.items():
        values = [text.encode() for text in (value if isinstance(value, list) else [value])]
        features[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return {
        **{name: service.sample_texts(length, name) for name in service.texts_of_signatures},
        "token_ids": service.sample_tokens(length),
        "examples": {"examples": [example.SerializeToString(deterministic=True)]},
    }


def _request(signature: str, inputs: dict) -> predict_pb2.PredictRequest:
    request = predict_pb2.PredictRequest()
    request.model_spec.signature_name = signature
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request
