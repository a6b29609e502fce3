"""The verb `embed`: row n of the output is the vector of text n, in every format."""

import json
import pathlib

import numpy as np
import pytest
from pyarrow import parquet

from official import xlnet
from tests.helpers.world import command


def vectors_of(path, texts):
    if path.suffix == ".npy":
        assert np.load(path).dtype == np.float32
        return np.load(path)
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        rows = parquet.read_table(path).to_pylist()
    assert [row["text"] for row in rows] == texts
    return np.array([row["vector"] for row in rows], np.float32)


@pytest.mark.parametrize(
    ("kind", "ending"), [("txt", "npy"), ("jsonl", "jsonl"), ("json", "parquet")]
)
def test_rows_are_those_of_embed(world, tmp_path, capsys, kind, ending):
    texts = [line[:60].strip() for line in pathlib.Path(world.text).read_text().split("\n")[:37]]
    source, output = tmp_path / f"texts.{kind}", tmp_path / "new" / f"vectors.{ending}"
    lines = texts if kind == "txt" else [json.dumps({"text": text, "n": 1}) for text in texts]
    source.write_text("\n".join(lines) + "\n")
    settings = {"batch_size": 2, "pooling": "cls", "layer": -2}  # Two chunks.
    files = {"model": world.pretrained, "input": source, "output": output}
    result = command("embed", **files, **settings)
    assert result["texts"] == 37 and result["texts_per_second"] > 0
    assert "37/37 texts" in capsys.readouterr().err
    expected = xlnet.embed(world.pretrained, texts, "cls", layer=-2)
    assert expected.shape == (37, result["width"]) and "" in texts
    np.testing.assert_allclose(vectors_of(output, texts), expected, atol=1e-6)
    assert [path.name for path in output.parent.iterdir()] == [output.name]
