"""Wrong requests by the hundred to signatures of exports, and over gRPC to a server.

A wrong request is answered with INVALID_ARGUMENT and changes nothing: the good request is answered
as before. A request that is not refused gives finite numbers, and each of its rows what the row
alone gives. Part of `make fuzz`.
"""

import functools

import grpc
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import json_format
from hypothesis import strategies as st
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from tests.helpers.served_models import as_example, examples_of, inputs_of
from tests.helpers.wrong.changes import changed_inputs, changed_tree
from tests.helpers.wrong.promises import IS_LONG, fuzz
from tools.serving_stand_in import RequestError, StandIn, Version

pytestmark = pytest.mark.slow
NAME = "fuzz"
SLOW = ["token_classification", "question_answering", "multiple_choice"]
if IS_LONG:
    SLOW += ["multi_label", "regression", "ranking", "encoder", "lm"]
TOKENS = {"token_ids": [[9, 4, 3]], "segment_ids": [[0, 0, 2]]}


def same(found, expected):
    if np.asarray(found).dtype == object or isinstance(found, bytes):
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def server(world):
    stand_in = StandIn(world.export("classification"), NAME)
    yield stand_in
    stand_in.close()


@pytest.mark.parametrize(
    "kinds",
    [["classification"], pytest.param(SLOW, marks=pytest.mark.nightly)],
    ids=["one", "more"],
)
def test_signatures(kinds, world, server):
    """The signatures of an export, called with wrong inputs."""

    @functools.cache
    def opened(kind):
        """A version, and {signature: (good inputs, their answer)}."""
        is_served = kind == "classification"
        version = server.version if is_served else Version(f"{world.export(kind)}/1")
        texts = {
            key: np.vectorize(str.encode, otypes=[object])(np.array(value, object))
            for key, value in inputs_of(examples_of(kind, 12)[-3:]).items()
        }
        rows = [as_example({key: value[row] for key, value in texts.items()}) for row in range(3)]
        good = {"serving_default": texts, "examples": {"examples": np.array(rows, object)}}
        good["token_ids"] = {}
        for key, info in version.signatures["token_ids"].inputs.items():
            sizes = [axis.size for axis in info.tensor_shape.dim[1:]]  # -1: any.
            shape = [3, *(size if size > 0 else 7 for size in sizes)]
            good["token_ids"][key] = np.ones(shape, tf.as_dtype(info.dtype).name)
        return version, {name: (x, version.predict(name, x)) for name, x in good.items()}

    def check_rows(version, signature, inputs):
        outputs = version.predict(signature, inputs)
        number = len(next(iter(inputs.values())))
        for name, value in outputs.items():
            assert value.dtype == object or np.isfinite(value).all(), name
            assert len(value) == number
        for row in range(min(number, 2)):
            alone = {name: value[row : row + 1] for name, value in inputs.items()}
            for name, (value,) in version.predict(signature, alone).items():
                if name == "choice":  # Of equally probable choices, any may be the best.
                    probabilities = outputs["probabilities"][row]
                    same(probabilities[value], probabilities.max())
                elif np.shape(value) == np.shape(outputs[name][row]):  # Not padded.
                    same(value, outputs[name][row])

    def check(draw):
        kind = draw(st.sampled_from(kinds), label="kind")
        version, signatures = opened(kind)
        signature = draw(st.sampled_from(sorted(signatures)), label="signature")
        inputs, answer = signatures[signature]
        status = "answered"
        try:
            check_rows(version, signature, draw(changed_inputs(inputs), label="inputs"))
        except RequestError as error:
            assert error.code == grpc.StatusCode.INVALID_ARGUMENT, error
            status = "refused"
        for name, value in version.predict(signature, inputs).items():
            same(value, answer[name])
        return f"{kind}: {status}"

    fuzz(0.1, check)


def test_requests_over_grpc(server):
    trees = []
    for signature, inputs in (("serving_default", {"text": ["the", "of"]}), ("token_ids", TOKENS)):
        request = predict_pb2.PredictRequest()
        request.model_spec.name, request.model_spec.signature_name = NAME, signature
        request.model_spec.version.value = 1
        for name, value in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
        trees.append(json_format.MessageToDict(request))
    channel = grpc.insecure_channel(f"localhost:{server.port}")
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

    def send(tree):
        request = predict_pb2.PredictRequest()
        json_format.ParseDict(tree, request, ignore_unknown_fields=True)
        return tf.make_ndarray(stub.Predict(request, timeout=60).outputs["probabilities"])

    expected = [send(tree) for tree in trees]

    def check(draw):
        number = draw(st.integers(0, 1))
        try:
            assert np.isfinite(send(draw(changed_tree(trees[number])))).all()
            status = "answered"
        except json_format.ParseError:
            status = "nothing that a client can send"
        except grpc.RpcError as error:
            status = error.code().name
            assert status in ("INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION"), error
        np.testing.assert_allclose(send(trees[number]), expected[number], atol=1e-5)
        return status

    fuzz(0.1, check)
    channel.close()
