"""Answers of a server that are no arrays."""

import pytest
from tensorflow.core.framework import types_pb2
from tensorflow_serving.apis import predict_pb2

from official.xlnet.errors import DataError
from official.xlnet.serving.client.endpoint import GrpcEndpoint


@pytest.mark.parametrize("dtype", types_pb2.DataType.values())
def test_tensors_of_every_type_are_arrays_or_a_sentence(dtype):
    endpoint = GrpcEndpoint("localhost:1", "model", "serving_default", 1.0, 0)
    answer = predict_pb2.PredictResponse()
    answer.outputs["label"].dtype = dtype
    answer.outputs["label"].tensor_shape.dim.add(size=0)
    endpoint._call = lambda method, request: answer
    try:
        assert endpoint.predict({"text": ["the"]})["label"].shape == (0,)
    except DataError as error:
        assert str(error).startswith("localhost:1: model 'model': expected tensors")
    finally:
        endpoint.close()
