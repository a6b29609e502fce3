"""Client of TF Serving over gRPC, with retries."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import grpc
import numpy as np
import tenacity
import tensorflow as tf
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from official.xlnet.errors import DataError, require_config

_MAX_MESSAGE_BYTES = 1 << 30
_FIRST_BACKOFF_SECONDS = 0.2
_MAX_BACKOFF_SECONDS = 5.0
_RETRIABLE = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
)

Inputs = Mapping[str, Any]


@dataclasses.dataclass
class Endpoint:
    """A model served by TF Serving's PredictionService.

    Args:
      address: `host:port` of gRPC.
      name: name of the model on the server.
      signature: name of the signature.
      timeout_seconds: timeout of one attempt of a request.
      retries: maximum number of retries if the server is unreachable, overloaded or too slow;
        with exponential backoff.

    Raises:
      ConfigError: the address is a URL, e.g. of TF Serving's REST API.

    Example:
      >>> connect("localhost:8500", "sst2").predict({"text": ["a fine film"]})
    """

    address: str
    name: str
    signature: str = "serving_default"
    timeout_seconds: float = 60.0
    retries: int = 5

    def __post_init__(self) -> None:
        expected = "host:port of gRPC, e.g. localhost:8500"
        require_config("://" not in self.address, "endpoint", expected, self.address)
        sizes = ("grpc.max_receive_message_length", "grpc.max_send_message_length")
        options = [(size, _MAX_MESSAGE_BYTES) for size in sizes]
        self._channel = grpc.insecure_channel(self.address, options)
        self._stub = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)

    def input_names(self) -> list[str]:
        """Returns the names of the signature's inputs.

        Raises:
          DataError: the server has no such model or signature.
          ConnectionError: the server is unreachable after all retries.
        """
        request = get_model_metadata_pb2.GetModelMetadataRequest()
        request.metadata_field.append("signature_def")
        answer = self._call(self._stub.GetModelMetadata, request)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        answer.metadata["signature_def"].Unpack(signatures)
        inputs = {}
        for name, signature in signatures.signature_def.items():
            if signature.inputs:
                inputs[name] = list(signature.inputs)
        if self.signature not in inputs:
            known = ", ".join(sorted(inputs))
            raise self._error(f"has the signatures {known}, not {self.signature!r}")
        return inputs[self.signature]

    def predict(self, inputs: Inputs) -> dict[str, np.ndarray]:
        """Sends a prediction request.

        Args:
          inputs: inputs by name, array-like [B, …].

        Returns:
          Outputs by name, [B, …].

        Raises:
          DataError: the server rejects the request, or answers with other values than tensors.
          ConnectionError: the server is unreachable or fails after all retries.
        """
        outputs = self._call(self._stub.Predict, predict_request(self.signature, inputs)).outputs
        try:
            return {name: tf.make_ndarray(value) for name, value in outputs.items()}
        except (KeyError, TypeError, ValueError) as error:  # E.g. a handle of a resource.
            raise self._error(f"expected tensors of numbers or text, got type {error}") from None

    def _call(self, method: Any, request: Any) -> Any:
        """Sends a request, with retries and exponential backoff on transient errors."""
        request.model_spec.name = self.name
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_is_transient),
            wait=tenacity.wait_random_exponential(_FIRST_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS),
            stop=tenacity.stop_after_attempt(self.retries + 1),
            reraise=True,
        )
        try:
            return retrying(method, request, timeout=self.timeout_seconds)
        except grpc.RpcError as error:
            message = f"{error.code().name}: {error.details()}"
            if not _is_transient(error):
                if error.code() == grpc.StatusCode.NOT_FOUND:
                    message += "; set --name to the name of the model on the server"
                raise self._error(message) from None
            where = f"{self.address}: model {self.name!r}"
            raise ConnectionError(f"{where}: {message} ({self.retries + 1} attempts)") from None

    def _error(self, message: str) -> DataError:
        return DataError(f"{self.address}: model {self.name!r}: {message}")


def _is_transient(error: BaseException) -> bool:
    """Whether a retry may help."""
    return isinstance(error, grpc.RpcError) and error.code() in _RETRIABLE


def predict_request(signature: str, inputs: Inputs) -> predict_pb2.PredictRequest:
    """A request for a model on TF Serving, without the name of the model.

    Args:
      signature: name of the signature.
      inputs: inputs by name, array-like [B, …].
    """
    request = predict_pb2.PredictRequest()
    request.model_spec.signature_name = signature
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request


connect = Endpoint  # Its name in documents.
