"""The verb `predict`: options that nothing would read are refused."""

import pytest

from official.xlnet.api.embed import embed_file
from official.xlnet.api.predict import predict_file
from tests.helpers.compare import assert_refused

OF_MODEL = {"products": "bfloat16"}
OF_ENDPOINT = {"name": "m", "signature": "encode", "task": "ranking"}
OF_ENDPOINT |= {"timeout": 7.0, "retries": 2}


@pytest.mark.parametrize("name", [*OF_MODEL, *OF_ENDPOINT])
def test_options_of_models_and_of_endpoints_are_not_mixed(tmp_path, name):
    with_model, with_endpoint = {"model": [str(tmp_path)]}, {"endpoint": "localhost:1"}
    reader, other = ("model", with_endpoint) if name in OF_MODEL else ("endpoint", with_model)
    options = {name: (OF_MODEL | OF_ENDPOINT)[name], **other}
    message = f"{name}: expected {reader}, which reads it"
    assert_refused(message, predict_file, "rows.tsv", str(tmp_path / "p.jsonl"), **options)


def test_one_layer_or_several(tmp_path):
    message = "layer: expected without layers"
    assert_refused(
        message, embed_file, str(tmp_path), "texts", "vectors.npy", layer=-2, layers=[0, -1]
    )
