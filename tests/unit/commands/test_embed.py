"""The verb `embed`: row n of the output is the vector of text n, in every format."""

import json

import numpy as np
import pytest

from official import xlnet
from official.xlnet import cli
from tests.helpers.corpora import WORDS
from tests.helpers.tiny import WIDTH, tiny_encoder


@pytest.fixture(scope="module")
def model(tmp_path_factory, vocab_file):
    directory = str(tmp_path_factory.mktemp("model"))
    encoder = tiny_encoder(vocab_size=2000, seq_len=31, mem_len=0)
    xlnet.save_pretrained(encoder, directory, vocab_file)
    return directory


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 41))) for _ in range(37)]
    texts[5] = ""
    return texts


def run(capsys, *arguments):
    status = cli.main(["embed", *arguments])
    out, error = capsys.readouterr()
    return status, out, error


@pytest.mark.parametrize("kind", ["txt", "jsonl", "json"])
@pytest.mark.parametrize("ending", ["npy", "jsonl", "parquet"])
def test_rows_are_those_of_embed(capsys, model, texts, tmp_path, kind, ending):
    source, output = tmp_path / f"texts.{kind}", tmp_path / "new" / f"vectors.{ending}"
    lines = texts if kind == "txt" else [json.dumps({"text": text, "n": 1}) for text in texts]
    source.write_text("\n".join(lines) + "\n")
    arguments = (f"--model={model}", f"--input={source}", f"--output={output}")
    # Batches of 2: two chunks.
    status, out, error = run(capsys, *arguments, "--batch_size=2", "--pooling=cls", "--layer=-2")
    assert status == 0
    result = json.loads(out)
    assert (result["texts"], result["width"]) == (37, WIDTH) and result["texts_per_second"] > 0
    assert "37/37 texts" in error
    expected = xlnet.embed(model, texts, "cls", layer=-2)
    if ending == "npy":
        found = np.load(output)
        assert found.dtype == np.float32
    elif ending == "jsonl":
        rows = [json.loads(line) for line in output.read_text().splitlines()]
        assert [row["text"] for row in rows] == texts
        found = np.array([row["vector"] for row in rows], np.float32)
    else:
        pytest.importorskip("pyarrow")
        from pyarrow import parquet

        table = parquet.read_table(output).to_pydict()
        assert table["text"] == texts
        found = np.array(table["vector"], np.float32)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert [path.name for path in output.parent.iterdir()] == [output.name]


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("a\n", ["--output=x.csv"], "expected a file ending in .npy, .jsonl, .parquet"),
        ("", [], "expected at least one text, got none"),
        ("a\n", ["--layer=9"], "layer: expected -3 to 2 for 2 layers, got 9"),
        ("a\n", ["--max_length=2"], "input length: expected at least 3"),
    ],
)
def test_wrong_input_is_one_sentence(capsys, model, tmp_path, content, arguments, message):
    (tmp_path / "texts.txt").write_text(content)
    files = (f"--input={tmp_path}/texts.txt", f"--output={tmp_path}/v.npy")
    status, out, error = run(capsys, f"--model={model}", *files, *arguments)
    assert (status, out) == (2, "")
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "v.npy").exists()
