"""Files that verbs write: none in the place of what they read."""

import pytest

from official.xlnet import cli

VERBS = [
    ("predict", "--model=m", "--input={source}"),
    ("embed", "--model=m", "--input={source}"),
    ("score", "--model=m", "--input={source}"),
    ("generate", "--model=m", "--input={source}"),
    ("inspect", "records", "--config={source}", "data"),
    ("inspect", "runs", "{source}"),
]


@pytest.mark.parametrize("arguments", VERBS, ids=lambda arguments: " ".join(arguments[:2]))
@pytest.mark.parametrize("spelled", ["", "./", "link"])
def test_an_input_is_not_replaced(tmp_path, monkeypatch, capsys, arguments, spelled):
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "texts.npy"
    source.write_bytes(b"what would be lost\n")
    (tmp_path / "link").symlink_to(source)
    output = "link" if spelled == "link" else f"{spelled}texts.npy"
    filled = [argument.format(source="texts.npy") for argument in arguments]
    assert cli.main([*filled, f"--output={output}"]) == 2
    assert "--output: expected another file than the input" in capsys.readouterr().err
    assert source.read_bytes() == b"what would be lost\n"
