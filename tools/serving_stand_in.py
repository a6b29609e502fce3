"""Mock TF Serving server, for tests and benchmarks without the TF Serving binary.

    python -m tools.serving_stand_in --base_path=DIR --name=NAME --port=8500 --rest_api_port=8501

Implements Predict and GetModelMetadata of PredictionService over gRPC, and the predict, metadata
and status calls of the REST API, for a single model. It polls the base path, loads the latest
version with TensorFlow's SavedModel loader into a session (as TF Serving does), and replays its
warm-up requests before it replaces the previous version. Batching is not supported.
"""

from __future__ import annotations

import base64
import collections
import concurrent.futures
import contextlib
import gc
import json
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  Registers the operations.
from absl import app, flags
from google.protobuf import json_format
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    predict_pb2,
    prediction_log_pb2,
    prediction_service_pb2_grpc,
)

_WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"
_THREADS = 8  # gRPC worker threads.
_MAX_MESSAGE_BYTES = 1 << 30
_MAX_ERROR_CHARS = 1024  # As TF Serving; a client takes no longer ones than 8 to 16 KB.
_SLEEP_SECONDS = 3600  # The main thread only waits for an interrupt.


class RequestError(Exception):
    """Error returned to the client.

    Args:
      code: gRPC status code.
      message: error message, which is cut.
    """

    def __init__(self, code: grpc.StatusCode, message: str):
        super().__init__(message[:_MAX_ERROR_CHARS])
        self.code = code


class Version:
    """A loaded version of the model.

    Args:
      path: directory of the SavedModel; its name is the version number.

    Attributes:
      number: the version number.
      signatures: {name: signature definition}.
    """

    def __init__(self, path: str):
        self.number = int(os.path.basename(path))
        graph = tf.Graph()
        self._session = tf.compat.v1.Session(graph=graph)
        with graph.as_default():
            meta = tf.compat.v1.saved_model.load(self._session, ["serve"], path)
        self.signatures = {n: s for n, s in meta.signature_def.items() if s.inputs}
        self._calls = {
            name: self._session.make_callable(
                [tensor.name for tensor in signature.outputs.values()],
                [tensor.name for tensor in signature.inputs.values()],
            )
            for name, signature in self.signatures.items()
        }
        warmup = os.path.join(path, _WARMUP_FILE)
        if os.path.exists(warmup):
            for (record,) in tf.data.TFRecordDataset(warmup).batch(1).as_numpy_iterator():
                log = prediction_log_pb2.PredictionLog.FromString(record)
                request = log.predict_log.request
                inputs = {n: tf.make_ndarray(x) for n, x in request.inputs.items()}
                self.predict(request.model_spec.signature_name, inputs)

    def close(self) -> None:
        """Releases the session."""
        self._calls.clear()
        self._session.close()

    def predict(self, signature_name: str, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs a signature.

        Args:
          signature_name: name of the signature.
          inputs: arrays by input name.

        Returns:
          Arrays by output name.

        Raises:
          RequestError: the signature does not exist, or the inputs do not match it.
        """
        invalid = grpc.StatusCode.INVALID_ARGUMENT
        signature = self.signatures.get(signature_name)
        if signature is None:
            raise RequestError(
                grpc.StatusCode.FAILED_PRECONDITION,
                f'Serving signature key "{signature_name}" not found.',
            )
        missing, extra = set(signature.inputs) - set(inputs), set(inputs) - set(signature.inputs)
        if missing or extra:
            raise RequestError(
                invalid,
                f"inputs do not match the signature: sent extra: {sorted(extra)}; missing but "
                f"required: {sorted(missing)}",
            )
        for name, info in signature.inputs.items():
            expected = tf.dtypes.as_dtype(info.dtype)
            is_string = inputs[name].dtype.kind in "OSU"
            if is_string != (expected == tf.string) or (
                not is_string and tf.dtypes.as_dtype(inputs[name].dtype) != expected
            ):
                got = "string" if is_string else inputs[name].dtype.name
                raise RequestError(invalid, f"{name}: expects {expected.name}, got {got}")
        try:
            values = self._calls[signature_name](*(inputs[name] for name in signature.inputs))
        except tf.errors.OpError as error:
            code = {c.value[0]: c for c in grpc.StatusCode}[error.error_code]
            raise RequestError(code, error.message) from None
        except (ValueError, TypeError) as error:
            raise RequestError(invalid, str(error)) from None
        return dict(zip(signature.outputs, values, strict=True))


class StandIn:
    """gRPC and REST servers that poll the base path for new versions.

    Args:
      base_path: base directory of the model's versions.
      name: name of the model.
      port: port for gRPC; 0 selects a free port.
      rest_port: port for REST; 0 selects a free port.
      poll_seconds: interval between checks of the base path, in seconds.

    Attributes:
      port: gRPC port in use.
      rest_port: REST port in use.
      version: the version being served.
    """

    def __init__(
        self, base_path: str, name: str, port: int = 0, rest_port: int = 0, poll_seconds: float = 1
    ):
        self.name = name
        self._base_path, self._poll_seconds = base_path, poll_seconds
        self.version: Version | None = None
        self._users: collections.Counter[int] = collections.Counter()
        self._changed = threading.Condition()
        self._poll()
        self._grpc = grpc.server(
            concurrent.futures.ThreadPoolExecutor(_THREADS),
            options=[("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES)],
        )
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
            _Servicer(self), self._grpc
        )
        self.port = self._grpc.add_insecure_port(f"localhost:{port}")
        self._grpc.start()
        handler = type("Handler", (_Handler,), {"stand_in": self})
        self._http = ThreadingHTTPServer(("localhost", rest_port), handler)
        self.rest_port = self._http.server_address[1]
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._http.serve_forever, daemon=True),
            threading.Thread(target=self._watch, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Shuts down the servers."""
        self._stop.set()
        self._http.shutdown()
        self._http.server_close()
        self._grpc.stop(None)
        for thread in self._threads:
            thread.join()

    @contextlib.contextmanager
    def using(self, name: str, number: int = 0) -> Iterator[Version]:
        """Context manager that yields the served version and prevents it from being unloaded.

        Args:
          name: requested model name.
          number: requested version number; 0 for the latest.

        Raises:
          RequestError: the model or version is not being served.
        """
        with self._changed:
            version = self.version
            if name != self.name or version is None or number not in (0, version.number):
                asked = f"{name} version {number}" if number else name
                raise RequestError(
                    grpc.StatusCode.NOT_FOUND, f"Servable not found for request: {asked}"
                )
            self._users[version.number] += 1
        try:
            yield version
        finally:
            with self._changed:
                self._users[version.number] -= 1
                self._changed.notify_all()

    def _watch(self):
        while not self._stop.wait(self._poll_seconds):
            self._poll()

    def _poll(self):
        numbers = [int(entry) for entry in os.listdir(self._base_path) if entry.isdigit()]
        newest = max(numbers, default=0)
        if newest and (self.version is None or newest != self.version.number):
            old, new = self.version, Version(os.path.join(self._base_path, str(newest)))
            with self._changed:
                self.version = new
                if old is not None:
                    self._changed.wait_for(lambda: not self._users[old.number])
            if old is not None:
                old.close()
                del old
                gc.collect()  # TensorFlow graphs contain reference cycles.


class _Servicer(prediction_service_pb2_grpc.PredictionServiceServicer):
    def __init__(self, stand_in: StandIn):
        self._stand_in = stand_in

    def Predict(self, request, context):  # noqa: N802
        try:
            spec = request.model_spec
            signature = spec.signature_name or "serving_default"
            inputs = {name: _array(name, value) for name, value in request.inputs.items()}
            with self._stand_in.using(spec.name, spec.version.value) as version:
                outputs = version.predict(signature, inputs)
                number = version.number
        except RequestError as error:
            context.abort(error.code, str(error))
        response = predict_pb2.PredictResponse()
        response.model_spec.CopyFrom(spec)
        response.model_spec.version.value = number
        for name, value in outputs.items():
            response.outputs[name].CopyFrom(tf.make_tensor_proto(value))
        return response

    def GetModelMetadata(self, request, context):  # noqa: N802
        try:
            with self._stand_in.using(request.model_spec.name) as version:
                signatures = _signature_map(version)
        except RequestError as error:
            context.abort(error.code, str(error))
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        response.model_spec.name = self._stand_in.name
        response.metadata["signature_def"].Pack(signatures)
        return response


class _Handler(BaseHTTPRequestHandler):
    stand_in: StandIn
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    _PATH = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+))?(/metadata|:predict)?")

    def do_GET(self):
        self._answer(self._get)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(lambda name, version, call: self._post(name, version, call, body))

    def _get(self, name, version, call):
        if call == "/metadata":
            tree = json_format.MessageToDict(
                _signature_map(version), preserving_proto_field_name=True
            )
            spec = {"name": name, "signature_name": "", "version": str(version.number)}
            return {"model_spec": spec, "metadata": {"signature_def": tree}}
        status = {"version": str(version.number), "state": "AVAILABLE"}
        return {"model_version_status": [status | {"status": {"error_code": "OK"}}]}

    def _post(self, name, version, call, body):
        if call != ":predict":
            raise RequestError(grpc.StatusCode.INVALID_ARGUMENT, f"Malformed request: {self.path}")
        try:
            signature, inputs, by_row = _parse(version, body)
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
            message = f"JSON Parse error: {error}"
            raise RequestError(grpc.StatusCode.INVALID_ARGUMENT, message) from None
        outputs = {n: _to_json(x) for n, x in version.predict(signature, inputs).items()}
        only = next(iter(outputs.values())) if len(outputs) == 1 else None
        if not by_row:
            return {"outputs": outputs if only is None else only}
        rows = zip(*outputs.values(), strict=True)
        predictions = [dict(zip(outputs, row, strict=True)) for row in rows]
        return {"predictions": predictions if only is None else only}

    def _answer(self, call):
        match = self._PATH.fullmatch(self.path)
        status = 200
        try:
            if match is None:
                raise RequestError(grpc.StatusCode.NOT_FOUND, f"Malformed request: {self.path}")
            with self.stand_in.using(match[1], int(match[2] or 0)) as version:
                tree = call(match[1], version, match[3])
        except RequestError as error:
            status = {"NOT_FOUND": 404, "UNAVAILABLE": 503}.get(error.code.name, 400)
            tree = {"error": str(error)}
        data = json.dumps(tree).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        """Disables request logging."""


def _array(name: str, proto: tensor_pb2.TensorProto) -> np.ndarray:
    """Parses a tensor with TensorFlow's own checks, as TF Serving does."""
    try:
        dtype = tf.dtypes.as_dtype(proto.dtype)
        value = tf.io.parse_tensor(proto.SerializeToString(), dtype).numpy()
    except (tf.errors.OpError, TypeError, ValueError) as error:
        message = f"tensor parsing error: {name}: {error}"
        raise RequestError(grpc.StatusCode.INVALID_ARGUMENT, message) from None
    return np.asarray(value, object) if dtype == tf.string else value


def _signature_map(version: Version) -> Any:
    signatures = get_model_metadata_pb2.SignatureDefMap()
    for name, signature in version.signatures.items():
        signatures.signature_def[name].CopyFrom(signature)
    return signatures


def _parse(version: Version, body: bytes) -> tuple[str, dict[str, np.ndarray], bool]:
    """Parses a REST request; returns (signature, inputs, whether it is in row format)."""
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    tree = json.loads(body)
    if not isinstance(tree, dict) or ("instances" in tree) == ("inputs" in tree):
        raise RequestError(invalid, 'JSON request expects one of the keys "instances", "inputs"')
    name = tree.get("signature_name", "serving_default")
    signature = version.signatures.get(name)
    if signature is None:
        raise RequestError(invalid, f'Serving signature name: "{name}" not found in signature def')
    by_row = "instances" in tree
    columns = tree["instances"] if by_row else tree["inputs"]
    if by_row and columns and isinstance(columns[0], dict):
        names = set().union(*columns)
        if any(set(row) != names for row in columns):
            raise RequestError(invalid, "instances: expected the same inputs in every row")
        columns = {name: [row[name] for row in columns] for name in names}
    if not isinstance(columns, dict):
        columns = {next(iter(signature.inputs)): columns}
    inputs = {}
    for key, value in columns.items():
        info = signature.inputs.get(key)
        dtype = tf.dtypes.as_dtype(info.dtype) if info else tf.string
        try:
            inputs[key] = _from_json(value, dtype)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"{key}: expected {dtype.name} of one shape: {error}") from None
    return name, inputs, by_row


def _from_json(value: Any, dtype: tf.DType) -> np.ndarray:
    if dtype != tf.string:
        array = np.asarray(value)
        if array.dtype.kind != ("b" if dtype == tf.bool else "i"):
            raise ValueError(f"got {array.dtype}")
        values = array.astype(dtype.as_numpy_dtype)
        if not np.array_equal(values, array):
            raise OverflowError("got a number out of range")
        return values

    def encoded(item):
        if isinstance(item, list):
            return [encoded(part) for part in item]
        if isinstance(item, dict):
            return base64.b64decode(item["b64"])
        if not isinstance(item, str):
            raise ValueError(f"got {item!r}")
        return item.encode()

    return np.asarray(encoded(value), object)


def _to_json(value: np.ndarray) -> Any:
    if value.dtype.kind == "O":
        return [_to_json(x) if isinstance(x, np.ndarray) else x.decode() for x in value]
    return value.tolist()


def main(argv: list[str]) -> None:
    """Serves until interrupted."""
    del argv
    stand_in = StandIn(_BASE_PATH.value, _NAME.value, _PORT.value, _REST_PORT.value, _POLL.value)
    ports = {"port": stand_in.port, "rest_port": stand_in.rest_port}
    print(json.dumps(ports), flush=True)
    try:
        while True:
            time.sleep(_SLEEP_SECONDS)
    except KeyboardInterrupt:
        stand_in.close()


if __name__ == "__main__":
    _BASE_PATH = flags.DEFINE_string(
        "base_path", None, "Base directory of versions.", required=True
    )
    _NAME = flags.DEFINE_string("name", "model", "Name of the model.")
    _PORT = flags.DEFINE_integer("port", 8500, "gRPC port; 0 selects a free port.")
    _REST_PORT = flags.DEFINE_integer("rest_api_port", 8501, "REST port; 0 selects a free port.")
    _POLL = flags.DEFINE_float(
        "poll_seconds", 1.0, "Interval between checks for new versions, in seconds."
    )
    app.run(main, argv=sys.argv)
