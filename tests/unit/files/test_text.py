"""Opening of text files: encodings, byte order marks, compression and line ends."""

import bz2
import gzip
import json
import lzma
import random
import shutil
import sqlite3
import subprocess
import tarfile
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import zstandard

from data_prep.corpus.corpus import find_shards
from data_prep.settings import ReadOptions
from data_prep.tasks.row_formats import read_file
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError
from official.xlnet.files.text import open_text, printable
from tests.helpers.compare import assert_refused

TEXT = "ä naïve line\nBZh 标题\n"
COMPRESS = {
    "none": bytes,
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}
LATIN = gzip.compress("\n\n£1\n".encode("cp1252"), mtime=0)


def read(path, data):
    path.write_bytes(data)
    with open_text(str(path), None) as file:
        return file.read()


def test_what_steers_a_terminal_or_is_not_seen_is_escaped():
    for (
        char
    ) in "\0\x07\x1b\r\x7f\x80\x9b\xad\u061c\u200b\u200e\u2028\u2029\u202e\u2066\ufeff\ud800":
        escaped = printable(f"a{char}b")
        assert escaped.isprintable() and json.loads(f'"{escaped}"') == f"a{char}b"
    shown = "a\tb\nc é 標 😀 \u200c\u200d\u0600\u070f"
    assert printable(shown) == shown


@pytest.mark.parametrize("name", ["a.txt", "a.txt.GZ"])
@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_compression_is_recognized_by_content(kind, name, encoding, tmp_path):
    path, data = tmp_path / name, COMPRESS[kind](TEXT.encode(encoding))
    if name == "a.txt.GZ" and kind == "none":
        assert_refused("expected a complete gzip file", read, path, data)
        return
    assert read(path, data) == TEXT
    assert read(path, data * 2).startswith(TEXT)
    if kind != "none":
        assert_refused(rf"a\.txt.*: expected a complete {kind} file", read, path, data[:-3])


TOOLS = {"gzip": "gzip", "bz2": "bzip2", "xz": "xz", "zstd": "zstd"}


@pytest.mark.parametrize("kind", [kind for kind in TOOLS if shutil.which(TOOLS[kind])])
def test_damage_anywhere_in_a_file_of_several_streams_is_an_error_or_harmless(kind, tmp_path):
    """A changed byte, a cut or garbage behind the end: all of the text, or an error of the file."""
    rng = random.Random(kind)
    parts = ["".join(rng.choices("abc de\n", k=rng.randint(1, 4000))) for _ in range(3)]
    streams = [COMPRESS[kind](part.encode()) for part in parts]
    whole, text = b"".join(streams), "".join(parts)
    ends = {sum(map(len, streams[:n])) for n in range(1, 4)}
    assert read(tmp_path / "a", whole) == text
    for place in [*range(0, len(whole), max(1, len(whole) // 60)), *(end - 1 for end in ends)]:
        changed = bytearray(whole)
        changed[place] ^= 1 << rng.randrange(8)
        for damaged in (bytes(changed), whole[:place], whole + b"garbage"):
            tool = subprocess.run([TOOLS[kind], "-t", "-q"], input=damaged, capture_output=True)
            try:
                found = read(tmp_path / "a", damaged)
            except DataError as error:
                assert "a: expected" in str(error) or "/a, " in str(error)
                assert tool.returncode or len(damaged) not in ends
            else:
                # A stream may end at a cut; a changed flag may have no effect.
                is_prefix = len(damaged) in {0, *ends} and text.startswith(found)
                assert (found == text and not tool.returncode) or is_prefix, place


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (TEXT.encode("utf-16"), "expected UTF-8, got UTF-16; convert it with: iconv -f UTF-16 "),
        ("a,b\n1,2\n".encode("utf-16-le"), "got UTF-16"),
        (TEXT.encode("utf-32"), "got UTF-32; convert it with: iconv -f UTF-32 "),
        ("fine\ncafé\n".encode("latin-1"), r"a, line 2: .* the byte 0xe9 .* iconv -f WINDOWS-1252"),
        (LATIN, r"a, line 3: expected UTF-8, got the byte"),
        ("a\nä".encode()[:-1], r"a, line 2: expected UTF-8, got a file that ends within"),
    ],
)
def test_other_encodings_and_formats_are_refused_with_what_helps(data, message, tmp_path):
    assert_refused(message, read, tmp_path / "a", data)


FRAME = pd.DataFrame({"text": ["a", "b"] * 9, "label": [0, 1] * 9})


def tar(path, mode):
    with tarfile.open(path, mode) as file:
        file.add(__file__, "a.txt")


def stream(path):
    table = pa.Table.from_pandas(FRAME)
    with pa.ipc.new_stream(path, table.schema) as file:
        file.write_table(table)


def archive(path):
    with zipfile.ZipFile(path, "w") as file:
        file.write(__file__, "a.txt")


# {what the message says: writers of such files}
OTHER = {
    "a ZIP archive": [archive],
    "a Parquet file": [FRAME.to_parquet],
    "an Arrow or Feather file": [FRAME.to_feather, stream],
    "an ORC file": [FRAME.to_orc],
    "an SQLite database": [lambda path: FRAME.to_sql("rows", sqlite3.connect(path))],
    "a pickle of Python": [FRAME.to_pickle],
    "a tar archive": [lambda path: tar(path, "w"), lambda path: tar(path, "w:gz")],
    "a file of arrays": [lambda path: np.save(path.open("wb"), np.ones(9))],
    "binary data": [lambda path: path.write_bytes(bytes(range(20)) * 3 + bytes(99))],
}


@pytest.mark.parametrize("kind", OTHER)
@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a", "a.json"])
def test_files_of_other_formats_are_named_wherever_text_is_read(kind, name, tmp_path):
    path = tmp_path / name
    for write in OTHER[kind]:
        write(path)
        expected = f"{path}: expected .*, got {kind}"
        assert_refused(expected, lambda: open_text(str(path)).__enter__())
        assert_refused(expected, lambda: [*read_file(Reading(str(path), TaskConfig()))])
        assert_refused(expected, find_shards, [str(path)], ReadOptions())
        path.unlink()
