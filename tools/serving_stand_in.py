"""Mock TF Serving server, for tests and benchmarks without the TF Serving binary.

    python -m tools.serving_stand_in --base_path=DIR --name=NAME --port=8500 --rest_api_port=8501

Implements Predict and GetModelMetadata of PredictionService over gRPC, and the predict and metadata
calls of the REST API, for a single model. It polls the base path, loads the latest version with
TensorFlow's SavedModel loader into a session (as TF Serving does), and replays its warm-up requests
before it replaces the previous version. Batching is not supported.
"""

from __future__ import annotations

import contextlib
import sys

if __name__ == "__main__":  # Before the imports, which take seconds.
    from official.xlnet.runtime.progress import elapsed_time

    _STARTING = contextlib.ExitStack()
    print("loading TensorFlow", file=sys.stderr, flush=True)
    _STARTING.enter_context(elapsed_time("loading", silence_seconds=9))

import base64
import concurrent.futures
import functools
import gc
import json
import os
import re
import threading
from collections.abc import Callable
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

from official.xlnet.runtime.start.native_logs import hide_below_errors

_WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"
_THREADS = 8  # gRPC worker threads.
_MAX_MESSAGE_BYTES = 1 << 30
_MAX_ERROR_CHARS = 1024  # As TF Serving; a client takes no longer ones than 8 to 16 KB.
_PATH = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+))?(/metadata|:predict)?")
_INVALID, _NOT_FOUND = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND

Arrays = dict[str, np.ndarray]  # By name of the input or output.


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
        session = tf.compat.v1.Session(graph=tf.Graph())
        with session.graph.as_default():
            meta = tf.compat.v1.saved_model.load(session, ["serve"], path)
        self.signatures = {n: s for n, s in meta.signature_def.items() if s.inputs}
        self._calls = {
            name: session.make_callable(
                [tensor.name for tensor in signature.outputs.values()],
                [tensor.name for tensor in signature.inputs.values()],
            )
            for name, signature in self.signatures.items()
        }
        warmup = os.path.join(path, _WARMUP_FILE)
        records = tf.data.TFRecordDataset([warmup] if os.path.exists(warmup) else [])
        for record in records.as_numpy_iterator():
            request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
            inputs = {n: tf.make_ndarray(x) for n, x in request.inputs.items()}
            self.predict(request.model_spec.signature_name, inputs)

    def signature_map(self) -> Any:
        """Returns the signatures as the message that both APIs answer with."""
        return get_model_metadata_pb2.SignatureDefMap(signature_def=self.signatures)

    def predict(self, signature_name: str, inputs: Arrays) -> Arrays:
        """Runs a signature.

        Args:
          signature_name: name of the signature.
          inputs: arrays by input name.

        Returns:
          Arrays by output name.

        Raises:
          RequestError: the signature does not exist, or the inputs do not match it.
        """
        signature = self.signatures.get(signature_name)
        if signature is None:
            message = f'Serving signature key "{signature_name}" not found.'
            raise RequestError(grpc.StatusCode.FAILED_PRECONDITION, message)
        missing, extra = set(signature.inputs) - set(inputs), set(inputs) - set(signature.inputs)
        if missing or extra:
            raise RequestError(
                _INVALID,
                f"inputs do not match the signature: sent extra: {sorted(extra)}; missing but "
                f"required: {sorted(missing)}",
            )
        for name, info in signature.inputs.items():
            expected, dtype = tf.dtypes.as_dtype(info.dtype).name, inputs[name].dtype
            got = "string" if dtype.kind in "OSU" else dtype.name
            if got != expected:
                raise RequestError(_INVALID, f"{name}: expects {expected}, got {got}")
        try:
            values = self._calls[signature_name](*(inputs[name] for name in signature.inputs))
        except tf.errors.OpError as error:
            code = {c.value[0]: c for c in grpc.StatusCode}[error.error_code]
            raise RequestError(code, error.message) from None
        except (ValueError, TypeError) as error:
            raise RequestError(_INVALID, str(error)) from None
        return dict(zip(signature.outputs, values, strict=True))


class StandIn(prediction_service_pb2_grpc.PredictionServiceServicer):
    """gRPC and REST servers that poll the base path for new versions.

    Args:
      base_path: base directory of the model's versions.
      name: name of the model.
      port: port for gRPC; 0 selects a free port.
      rest_port: port for REST; 0 selects a free port.
      poll_seconds: interval between checks of the base path, in seconds.

    Attributes:
      name: name of the model.
      port: gRPC port in use.
      rest_port: REST port in use.
      version: the version being served.
    """

    def __init__(
        self, base_path: str, name: str, port: int = 0, rest_port: int = 0, poll_seconds: float = 1
    ):
        self._base_path, self.name, self._poll_seconds = base_path, name, poll_seconds
        self.version: Version | None = None
        self._poll()
        pool = concurrent.futures.ThreadPoolExecutor(_THREADS)
        options = [("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES)]
        self._grpc = grpc.server(pool, options=options)
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(self, self._grpc)
        self.port = self._grpc.add_insecure_port(f"localhost:{port}")
        self._grpc.start()
        handler = type("Handler", (_Handler,), {"stand_in": self})
        self._http = ThreadingHTTPServer(("localhost", rest_port), handler)
        self.rest_port = self._http.server_address[1]
        self._stop = threading.Event()
        targets = self._http.serve_forever, self._watch
        self._threads = [threading.Thread(target=target, daemon=True) for target in targets]
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

    def join(self) -> None:
        """Serves until interrupted."""
        self._stop.wait()

    def served(self, name: str, number: int = 0) -> Version:
        """Returns the served version.

        Args:
          name: requested model name.
          number: requested version number; 0 for the latest.

        Raises:
          RequestError: the model or version is not being served.
        """
        version = self.version
        if name != self.name or version is None or number not in (0, version.number):
            asked = f"{name} version {number}" if number else name
            raise RequestError(_NOT_FOUND, f"Servable not found for request: {asked}")
        return version

    def Predict(self, request, context):  # noqa: N802
        """Answers a request over gRPC."""
        spec = request.model_spec
        try:
            inputs = {name: _array(name, value) for name, value in request.inputs.items()}
            version = self.served(spec.name, spec.version.value)
            outputs = version.predict(spec.signature_name or "serving_default", inputs)
            names = list(request.output_filter or outputs)
            if not set(names) <= outputs.keys() or len(set(names)) < len(names):
                expected = f"output_filter: expected different names of {sorted(outputs)}"
                raise RequestError(_INVALID, f"{expected}, got {names}")
        except RequestError as error:
            context.abort(error.code, str(error))
        tensors = {name: tf.make_tensor_proto(outputs[name]) for name in names}
        response = predict_pb2.PredictResponse(model_spec=spec, outputs=tensors)
        response.model_spec.version.value = version.number
        return response

    def GetModelMetadata(self, request, context):  # noqa: N802
        """Answers with the signatures of the model, over gRPC."""
        try:
            signatures = self.served(request.model_spec.name).signature_map()
        except RequestError as error:
            context.abort(error.code, str(error))
        response = get_model_metadata_pb2.GetModelMetadataResponse(model_spec=request.model_spec)
        response.metadata["signature_def"].Pack(signatures)
        return response

    def _watch(self) -> None:
        while not self._stop.wait(self._poll_seconds):
            self._poll()

    def _poll(self) -> None:
        newest = max((int(n) for n in os.listdir(self._base_path) if n.isdigit()), default=0)
        if newest and (self.version is None or newest != self.version.number):
            # Requests that have the previous version keep it as long as they need it.
            self.version = Version(os.path.join(self._base_path, str(newest)))
            gc.collect()  # TensorFlow graphs contain reference cycles.


class _Handler(BaseHTTPRequestHandler):
    stand_in: StandIn
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        self._answer("/metadata", functools.partial(_metadata, self.stand_in.name))

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(":predict", functools.partial(_predict, body))

    def _answer(self, call: str, answer: Callable[[Version], dict[str, Any]]) -> None:
        match, status = _PATH.fullmatch(self.path), 200
        try:
            if match is None:
                raise RequestError(_NOT_FOUND, f"Malformed request: {self.path}")
            version = self.stand_in.served(match[1], int(match[2] or 0))
            if match[3] != call:
                raise RequestError(_INVALID, f"Malformed request: {self.path}")
            tree = answer(version)
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


def _metadata(name: str, version: Version) -> dict[str, Any]:
    tree = json_format.MessageToDict(version.signature_map(), preserving_proto_field_name=True)
    spec = {"name": name, "signature_name": "", "version": str(version.number)}
    return {"model_spec": spec, "metadata": {"signature_def": tree}}


def _predict(body: bytes, version: Version) -> dict[str, Any]:
    try:
        signature, inputs, by_row = _parse(version, body)
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise RequestError(_INVALID, f"JSON Parse error: {error}") from None
    outputs = {n: _to_json(x) for n, x in version.predict(signature, inputs).items()}
    if len(outputs) == 1:
        (outputs,) = outputs.values()
    elif by_row:
        rows = zip(*outputs.values(), strict=True)
        return {"predictions": [dict(zip(outputs, row, strict=True)) for row in rows]}
    return {"predictions" if by_row else "outputs": outputs}


def _array(name: str, proto: tensor_pb2.TensorProto) -> np.ndarray:
    """Parses a tensor with TensorFlow's own checks, as TF Serving does."""
    try:
        dtype = tf.dtypes.as_dtype(proto.dtype)
        value = tf.io.parse_tensor(proto.SerializeToString(), dtype).numpy()
    except (tf.errors.OpError, TypeError, ValueError) as error:
        raise RequestError(_INVALID, f"tensor parsing error: {name}: {error}") from None
    return np.asarray(value, object) if dtype == tf.string else value


def _parse(version: Version, body: bytes) -> tuple[str, Arrays, bool]:
    """Parses a REST request; returns (signature, inputs, whether it is in row format)."""
    tree = json.loads(body)
    if not isinstance(tree, dict) or ("instances" in tree) == ("inputs" in tree):
        raise ValueError('JSON request expects one of the keys "instances", "inputs"')
    name, by_row = tree.get("signature_name", "serving_default"), "instances" in tree
    if name not in version.signatures:
        raise ValueError(f'Serving signature name: "{name}" not found in signature def')
    specs, columns = version.signatures[name].inputs, tree["instances" if by_row else "inputs"]
    if by_row and columns and isinstance(columns[0], dict):
        names = set().union(*columns)
        if any(set(row) != names for row in columns):
            raise ValueError("instances: expected the same inputs in every row")
        columns = {name: [row[name] for row in columns] for name in names}
    if not isinstance(columns, dict):
        columns = {next(iter(specs)): columns}
    dtypes = {key: tf.dtypes.as_dtype(info.dtype) for key, info in specs.items()}
    # Inputs that the signature lacks are refused with it.
    columns = {key: _from_json(key, x, dtypes.get(key, tf.string)) for key, x in columns.items()}
    return name, columns, by_row


def _from_json(key: str, value: Any, dtype: tf.DType) -> np.ndarray:
    try:
        if dtype == tf.string:
            return np.asarray(_encoded(value), object)
        array, kind = np.asarray(value), "b" if dtype == tf.bool else "i"
        if array.dtype.kind != kind or (array.astype(dtype.as_numpy_dtype) != array).any():
            raise ValueError(f"got {array.dtype} or a number out of range")
        return array.astype(dtype.as_numpy_dtype)
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        raise ValueError(f"{key}: expected {dtype.name} of one shape: {error}") from None


def _encoded(item: Any) -> Any:
    if isinstance(item, list):
        return [_encoded(part) for part in item]
    return base64.b64decode(item["b64"]) if isinstance(item, dict) else item.encode()


def _to_json(value: np.ndarray) -> Any:
    if value.dtype.kind == "O":
        return [_to_json(x) if isinstance(x, np.ndarray) else x.decode() for x in value]
    return value.tolist()


def main(_: list[str]) -> None:
    """Serves until interrupted."""
    tf.get_logger().setLevel("ERROR")
    hide_below_errors(os.path.dirname(tf.__file__))
    with contextlib.suppress(KeyboardInterrupt):
        with _STARTING:
            print(f"loading {_BASE_PATH.value}", file=sys.stderr, flush=True)
            address = _NAME.value, _PORT.value, _REST_PORT.value
            stand_in = StandIn(_BASE_PATH.value, *address, _POLL.value)
        ready = f"ready: gRPC on port {stand_in.port}, REST on port {stand_in.rest_port}"
        print(ready, file=sys.stderr, flush=True)
        print(json.dumps({"port": stand_in.port, "rest_port": stand_in.rest_port}), flush=True)
        stand_in.join()


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
    app.run(main)
