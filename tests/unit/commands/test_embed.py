"""The verb `embed`: row n of the output is the vector of text n, in every format."""

import functools
import json
import pathlib

import numpy as np
import pytest
from pyarrow import parquet

from official import xlnet
from official.xlnet.data import text_files
from official.xlnet.runtime.progress import elapsed_time
from tests.helpers.world import command
from tests.helpers.wrong_input import refused, run

pytestmark = pytest.mark.usefixtures("eager")


def rows_of(path):
    if path.suffix == ".parquet":
        return parquet.read_table(path).to_pylist()
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        ("txt", "npy"),
        ("jsonl", "jsonl"),
        pytest.param("json", "parquet", marks=pytest.mark.slow),
    ],
)
def test_rows_are_those_of_embed(world, tmp_path, capsys, kind, ending, monkeypatch):
    shown = functools.partial(elapsed_time, interval_seconds=0)
    monkeypatch.setattr(text_files, "elapsed_time", shown)
    texts = [line[:60].strip() for line in pathlib.Path(world.text).read_text().split("\n")[:37]]
    source, output = tmp_path / f"texts.{kind}", tmp_path / "new" / f"vectors.{ending}"
    rows = [{"id": f"a{n}", "text": text} for n, text in enumerate(texts)]
    rows[36] |= {"more": [0.5]}  # In the last chunk alone.
    lines = texts if kind == "txt" else map(json.dumps, rows)
    source.write_text("\n".join(lines) + "\n")
    settings = {"batch_size": 2, "pooling": "cls", "layer": -2}  # Two chunks.
    files = {"model": world.pretrained, "input": source, "output": output}
    result = command("embed", **files, **settings)
    assert result["texts"] == 37 and result["texts_per_second"] > 0
    said = capsys.readouterr().err
    assert "texts: 37/37, windows: 37: " in said and "not in" not in said
    expected = xlnet.embed(world.pretrained, texts, "cls", layer=-2)
    assert expected.shape == (37, result["width"]) and "" in texts
    if ending == "npy":
        found = np.load(output)
        assert found.dtype == np.float32
    else:
        found = [row["vector"] for row in rows_of(output)]
        others = [{n: v for n, v in row.items() if n != "vector"} for row in rows_of(output)]
        filled = {"more": None} if ending == "parquet" else {}
        assert others == [filled | row for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert [path.name for path in output.parent.iterdir()] == [output.name]


@pytest.mark.parametrize(
    ("pooling", "ending", "stride"),
    [
        pytest.param("none", "parquet", 0, marks=pytest.mark.slow),
        ("words", "jsonl", 0),
        pytest.param("words", "parquet", 7, marks=pytest.mark.slow),
    ],
)
def test_rows_of_tokens_and_of_words_say_where_they_stand(world, tmp_path, pooling, ending, stride):
    texts = ["The cat sat,", "", "evaluated first " * 30, "漢 sat"]
    source, output = tmp_path / "texts.jsonl", tmp_path / f"parts.{ending}"
    rows = [{"text": text, "day": f"{number}"} for number, text in enumerate(texts, start=1)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
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
    assert all(row["day"] == str(row["text_id"]) for row in rows)
    assert all(texts[r["text_id"] - 1][r["start"] : r["end"]] == r["part"] for r in rows)
    found = np.array([row["vector"] for row in rows])
    np.testing.assert_allclose(found, [vector for _, vector in expected], atol=1e-5)
    if pooling == "words":
        assert [row["part"] for row in rows][:3] == ["The", "cat", "sat,"]
        found = embedder(texts, "words")
        assert not found[0, :-3].any() and not found[1].any()
        of_texts = [vectors[vectors.any(axis=1)] for vectors in found]
        np.testing.assert_allclose(
            np.concatenate(of_texts), [vector for _, vector in expected], atol=1e-5
        )


@pytest.mark.parametrize("ending", ["parquet", pytest.param("jsonl", marks=pytest.mark.slow)])
def test_chunks_without_tokens(world, tmp_path, ending):
    """The first chunk has none, and then none has."""
    for number, texts in enumerate(([""] * 17 + ["the water"], [""] * 3)):
        source, output = tmp_path / f"{number}.txt", tmp_path / f"{number}.{ending}"
        source.write_text("\n".join(texts) + "\n")
        settings = {"model": world.pretrained, "input": source, "output": output}
        command("embed", pooling="words", batch_size=1, **settings)
        assert len(rows_of(output)) == (2, 0)[number]


def test_columns_that_do_not_fit_are_one_sentence_and_npy_names_what_it_lacks(
    world, tmp_path, capfd
):
    source = tmp_path / "texts.jsonl"
    source.write_text('{"text": "a", "id": 1}\n{"text": "b", "id": "x", "end": 3}\n')
    flags = [f"--model={world.pretrained}", f"--input={source}"]
    for wrong, message in (
        (["out.parquet"], "column 'id': expected values of one type; write .jsonl"),
        (["out.jsonl", "--pooling=words"], "got end; rename them"),
    ):
        output, *more = wrong
        assert message in refused(
            run(capfd, "embed", *flags, f"--output={tmp_path / output}", *more)
        )
    done = run(capfd, "embed", *flags, f"--output={tmp_path / 'out.npy'}")
    assert f"texts are read from text; not in {tmp_path / 'out.npy'}: end, id\n" in done.err
