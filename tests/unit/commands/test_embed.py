"""The verb `embed`: row n of the output is the vector of text n, in every format."""

import functools
import json
import pathlib

import numpy as np
import pytest
from pyarrow import parquet

from official import xlnet
from official.xlnet.commands import embed
from official.xlnet.runtime.progress import elapsed_time
from tests.helpers.world import command


def rows_of(path):
    if path.suffix == ".parquet":
        return parquet.read_table(path).to_pylist()
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("kind", "ending"), [("txt", "npy"), ("jsonl", "jsonl"), ("json", "parquet")]
)
def test_rows_are_those_of_embed(world, tmp_path, capsys, kind, ending, monkeypatch):
    monkeypatch.setattr(embed, "elapsed_time", functools.partial(elapsed_time, interval_seconds=0))
    texts = [line[:60].strip() for line in pathlib.Path(world.text).read_text().split("\n")[:37]]
    source, output = tmp_path / f"texts.{kind}", tmp_path / "new" / f"vectors.{ending}"
    lines = texts if kind == "txt" else [json.dumps({"text": text, "n": 1}) for text in texts]
    source.write_text("\n".join(lines) + "\n")
    settings = {"batch_size": 2, "pooling": "cls", "layer": -2}  # Two chunks.
    files = {"model": world.pretrained, "input": source, "output": output}
    result = command("embed", **files, **settings)
    assert result["texts"] == 37 and result["texts_per_second"] > 0
    assert "37/37 texts, 37 windows: " in capsys.readouterr().err
    expected = xlnet.embed(world.pretrained, texts, "cls", layer=-2)
    assert expected.shape == (37, result["width"]) and "" in texts
    if ending == "npy":
        found = np.load(output)
        assert found.dtype == np.float32
    else:
        found = [row["vector"] for row in rows_of(output)]
        assert [row["text"] for row in rows_of(output)] == texts
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert [path.name for path in output.parent.iterdir()] == [output.name]


@pytest.mark.parametrize(
    ("pooling", "ending", "stride"),
    [("none", "parquet", 0), ("words", "jsonl", 0), ("words", "parquet", 7)],
)
def test_rows_of_tokens_and_of_words_say_where_they_stand(world, tmp_path, pooling, ending, stride):
    texts = ["The cat sat,", "", "evaluated first " * 30, "漢 sat"]
    source, output = tmp_path / "texts.txt", tmp_path / f"parts.{ending}"
    source.write_text("\n".join(texts) + "\n")
    settings = {"model": world.pretrained, "input": source, "max_length": 17}
    settings["window_stride"] = stride
    result = command("embed", output=output, pooling=pooling, layers="0,-1", **settings)
    assert result["truncated"] == (not stride) and result["unknown_tokens"] == 1
    tokenizer = xlnet.load_tokenizer(world.pretrained)
    embedder = xlnet.TextEmbedder(
        xlnet.load_encoder(world.pretrained), tokenizer, [0, -1], 17, stride
    )
    expected = []
    for number, text in enumerate(texts, start=1):
        vectors = embedder(text, "none")[:-2]
        offsets = tokenizer.encode_with_offsets(text)[1][: None if stride else 15]
        groups = {}
        for vector, (start, end) in zip(vectors, offsets, strict=True):
            first = text.rfind(" ", 0, start + 1) + 1 if pooling == "words" else (start, end)
            groups.setdefault(first, []).append(vector)
        expected += [(number, np.mean(group, axis=0)) for group in groups.values()]
    rows = rows_of(output)
    assert [row["text_id"] for row in rows] == [number for number, _ in expected]
    assert all(texts[r["text_id"] - 1][r["start"] : r["end"]] == r["part"] for r in rows)
    found = np.array([row["vector"] for row in rows])
    np.testing.assert_allclose(found, [vector for _, vector in expected], atol=1e-5)
    assert pooling == "none" or [row["part"] for row in rows][:3] == ["The", "cat", "sat,"]


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_chunks_without_tokens(world, tmp_path, ending):
    """The first chunk has none, and then none has."""
    for number, texts in enumerate(([""] * 17 + ["the water"], [""] * 3)):
        source, output = tmp_path / f"{number}.txt", tmp_path / f"{number}.{ending}"
        source.write_text("\n".join(texts) + "\n")
        settings = {"model": world.pretrained, "input": source, "output": output}
        command("embed", pooling="words", batch_size=1, **settings)
        assert len(rows_of(output)) == (2, 0)[number]
