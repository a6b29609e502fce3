"""Client of TF Serving over gRPC or REST, with retries."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import grpc
import numpy as np
import tenacity
import tensorflow as tf
import urllib3
from google.protobuf import any_pb2
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from official.xlnet.errors import DataError
from official.xlnet.files.json_files import json_text, parse_json
from official.xlnet.files.schema import conform

_MAX_MESSAGE_BYTES = 1 << 30
_FIRST_BACKOFF_SECONDS = 0.2
_MAX_BACKOFF_SECONDS = 5.0
_RETRIABLE = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
)
_RETRIABLE_HTTP = (429, 502, 503, 504)

Inputs = Mapping[str, Any]
Result = TypeVar("Result")


class _TransientError(Exception):
    """A failure that a retry may resolve."""


@dataclasses.dataclass
class Endpoint(abc.ABC):
    """A model served by TF Serving.

    Args:
      address: `host:port` for gRPC; `http://host:port` or `https://…` for REST.
      name: name of the model on the server.
      signature: name of the signature.
      timeout_seconds: timeout of one attempt of a request.
      retries: maximum number of retries if the server is unreachable, overloaded or too slow;
        with exponential backoff.
    """

    address: str
    name: str
    signature: str
    timeout_seconds: float
    retries: int

    @abc.abstractmethod
    def __post_init__(self) -> None:
        """Opens the connection."""

    def input_names(self) -> list[str]:
        """Returns the names of the signature's inputs.

        Raises:
          DataError: the server has no such model or signature.
          ConnectionError: the server is unreachable after all retries.
        """
        signatures = self._with_retries(self._signatures)
        if self.signature not in signatures:
            raise DataError(
                f"{self.address}: model {self.name!r} has the signatures "
                f"{', '.join(sorted(signatures))}, not {self.signature!r}"
            )
        return signatures[self.signature]

    def predict(self, inputs: Inputs) -> dict[str, np.ndarray]:
        """Sends a prediction request.

        Args:
          inputs: inputs by name, array-like [B, …].

        Returns:
          Outputs by name, [B, …].

        Raises:
          DataError: the server rejects the request.
          ConnectionError: the server is unreachable or fails after all retries.
        """
        return self._with_retries(lambda: self._predict(inputs))

    @abc.abstractmethod
    def _signatures(self) -> dict[str, list[str]]:
        """Returns the names of the inputs of each signature."""

    @abc.abstractmethod
    def _predict(self, inputs: Inputs) -> dict[str, np.ndarray]:
        """Sends a request once, without retries."""

    @abc.abstractmethod
    def close(self) -> None:
        """Closes the connection."""

    def _with_retries(self, call: Callable[[], Result]) -> Result:
        """Calls a function, with retries and exponential backoff on transient errors."""
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_TransientError),
            wait=tenacity.wait_random_exponential(_FIRST_BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS),
            stop=tenacity.stop_after_attempt(self.retries + 1),
            reraise=True,
        )
        try:
            return retrying(call)
        except _TransientError as error:
            raise ConnectionError(
                f"{self.address}: model {self.name!r}: {error} ({self.retries + 1} attempts)"
            ) from None

    def _wrong(self, message: str) -> DataError:
        return DataError(f"{self.address}: model {self.name!r}: {message}")


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


class GrpcEndpoint(Endpoint):
    """gRPC client of TF Serving's PredictionService."""

    def __post_init__(self):
        options = [
            ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
        ]
        self._channel = grpc.insecure_channel(self.address, options)
        self._stub = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)

    def _signatures(self):
        request = get_model_metadata_pb2.GetModelMetadataRequest()
        request.model_spec.name = self.name
        request.metadata_field.append("signature_def")
        packed: any_pb2.Any = self._call(self._stub.GetModelMetadata, request).metadata[
            "signature_def"
        ]
        signatures = get_model_metadata_pb2.SignatureDefMap()
        packed.Unpack(signatures)
        return {n: list(s.inputs) for n, s in signatures.signature_def.items() if s.inputs}

    def _predict(self, inputs):
        request = predict_request(self.signature, inputs)
        request.model_spec.name = self.name
        outputs = self._call(self._stub.Predict, request).outputs
        try:
            return {name: tf.make_ndarray(value) for name, value in outputs.items()}
        except KeyError as error:  # A handle of a resource is in no array.
            raise self._wrong(f"expected tensors of numbers or text, got type {error}") from None
        except (TypeError, ValueError) as error:
            raise self._wrong(f"expected tensors, got something else: {error}") from None

    def _call(self, method, request):
        try:
            return method(request, timeout=self.timeout_seconds)
        except grpc.RpcError as error:
            message = f"{error.code().name}: {error.details()}"
            if error.code() in _RETRIABLE:
                raise _TransientError(message) from None
            raise self._wrong(message) from None

    def close(self):
        self._channel.close()


class RestEndpoint(Endpoint):
    """REST client of TF Serving."""

    def __post_init__(self):
        self._pool = urllib3.PoolManager(maxsize=16, retries=False)
        self._url = f"{self.address.rstrip('/')}/v1/models/{self.name}"

    def _signatures(self):
        return self._metadata("inputs")

    def _predict(self, inputs):
        columns = {n: np.asarray(x, object).tolist() for n, x in inputs.items()}
        body = {"signature_name": self.signature, "inputs": columns}
        outputs = self._call("POST", f"{self._url}:predict", body).get("outputs")
        if not isinstance(outputs, dict):  # REST omits the name of a single output.
            names = self._metadata("outputs").get(self.signature, [])
            outputs = dict.fromkeys(names[:1], outputs)
        try:
            return {name: np.asarray(value) for name, value in outputs.items()}
        except ValueError as error:  # Rows of different lengths.
            raise self._wrong(f"expected outputs of one shape: {error}") from None

    def _metadata(self, kind):
        """Names of the `inputs` or `outputs` of each signature that has any."""
        tree = self._call("GET", f"{self._url}/metadata")
        try:
            signatures = tree["metadata"]["signature_def"]["signature_def"]
            found = {name: list(signature.get(kind, {})) for name, signature in signatures.items()}
        except (AttributeError, KeyError, TypeError):
            raise self._wrong("expected the metadata of a model, got something else") from None
        return {name: names for name, names in found.items() if names}

    def _call(self, method, url, body=None):
        try:
            response = self._pool.request(
                method,
                url,
                body=None if body is None else json_text(body).encode(),
                headers={"Content-Type": "application/json"},
                timeout=urllib3.Timeout(total=self.timeout_seconds),
            )
        except urllib3.exceptions.HTTPError as error:
            raise _TransientError(str(error)) from None
        text = response.data.decode("utf-8", "replace")
        if response.status in _RETRIABLE_HTTP:
            raise _TransientError(f"HTTP {response.status}: {text[:500]}")
        try:
            tree = conform(parse_json(text, url), dict[str, Any], url)
        except DataError:
            tree = {"error": text[:500]}
        if response.status != 200 or "error" in tree:
            raise self._wrong(f"HTTP {response.status}: {tree.get('error', text[:500])}")
        return tree

    def close(self):
        self._pool.clear()


def connect(
    address: str,
    name: str,
    signature: str = "serving_default",
    timeout_seconds: float = 60.0,
    retries: int = 5,
) -> Endpoint:
    """Connects to a model on TF Serving.

    Args:
      address: `host:port` for gRPC; `http://host:port` or `https://…` for REST.
      name: name of the model on the server.
      signature: name of the signature.
      timeout_seconds: timeout of one attempt of a request.
      retries: maximum number of retries of a request.

    Example:
      >>> connect("localhost:8500", "sst2").predict({"text": ["a fine film"]})
    """
    kind = RestEndpoint if address.startswith(("http://", "https://")) else GrpcEndpoint
    return kind(address, name, signature, timeout_seconds, retries)
