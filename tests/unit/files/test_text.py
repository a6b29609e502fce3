"""Opening of text files: encodings, byte order marks, compression and line ends."""

import bz2
import gzip
import json
import lzma
import unicodedata

import pytest
import zstandard

from official.xlnet.errors import DataError
from official.xlnet.files.text import open_text, printable

TEXT = "ä naïve line\nBZh 标题\n"
COMPRESS = {
    "none": bytes,
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.compress,
}


def read(path, newline=None):
    with open_text(str(path), newline) as file:
        return file.read()


def test_what_steers_a_terminal_or_is_not_seen_is_escaped():
    """Of all characters without a glyph, joiners alone are shown as they are."""
    shown = {"\t", "\n", "\u200c", "\u200d"}
    for code in range(0x10000):
        char = chr(code)
        kind = unicodedata.category(char)
        if kind == "Cn":
            continue  # Not assigned.
        glyph = unicodedata.name(char, "").startswith(("ARABIC", "SYRIAC"))  # Signs of numbers.
        steers = kind in ("Cc", "Cs", "Zl", "Zp") or (kind == "Cf" and not glyph)
        escaped = printable(f"a{char}b")
        assert (escaped != f"a{char}b") == ((steers and char not in shown) or code == 0x61C), code
        if char not in '"\\':
            assert json.loads(f'"{escaped}"', strict=False) == f"a{char}b"


@pytest.mark.parametrize("name", ["a.txt", "a.txt.GZ"])
@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_compression_is_recognized_by_content(kind, name, encoding, tmp_path):
    if name == "a.txt.GZ" and kind == "none":
        with pytest.raises(DataError, match="expected a gzip file"):
            read(write(tmp_path / name, b"text"))
        return
    data = COMPRESS[kind](TEXT.encode(encoding))
    assert read(write(tmp_path / name, data)) == TEXT
    assert read(write(tmp_path / name, data * 2)).startswith(TEXT)


@pytest.mark.parametrize("kind", [kind for kind in COMPRESS if kind != "none"])
def test_truncated_files_are_refused(kind, tmp_path):
    data = COMPRESS[kind](TEXT.encode() * 100)
    with pytest.raises(DataError, match=rf"a: expected a complete {kind} file"):
        read(write(tmp_path / "a", data[:-3]))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (TEXT.encode("utf-16"), "expected UTF-8, got UTF-16; convert it with: iconv -f UTF-16 "),
        (b"a,b\n1,2\n".decode().encode("utf-16-le"), "got UTF-16"),
        (TEXT.encode("utf-32"), "got UTF-32; convert it with: iconv -f UTF-32 "),
        ("fine\ncafé\n".encode("latin-1"), r"a, line 2: .* the byte 0xe9 .* iconv -f WINDOWS-1252"),
        (
            gzip.compress("\n\n£1\n".encode("cp1252"), mtime=0),
            r"a, line 3: expected UTF-8, got the byte",
        ),
        ("a\nä".encode()[:-1], r"a, line 2: expected UTF-8, got a file that ends within"),
        (b"PK\x03\x04more", "ZIP archive or an Excel workbook"),
        (b"PAR1more", "got a Parquet file"),
    ],
)
def test_other_encodings_and_formats_are_refused_with_what_helps(data, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read(write(tmp_path / "a", data))


def write(path, data):
    path.write_bytes(data)
    return path
