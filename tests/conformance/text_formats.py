"""What every format of text files has to do, for tests of the core's formats and of projects'."""

import dataclasses
import random
import re
from collections.abc import Callable

import pytest

from data_prep.corpus import corpus, readers, tfds_splits
from data_prep.settings import ReadOptions
from official.xlnet.configs.registry import TEXT_FORMATS
from official.xlnet.errors import DataError
from tests.helpers import corpora
from tests.helpers.corpora import random_documents, store_tfds

NOT_UTF8 = ["\udcff"]
BLOCK_SIZES = ((61, 53), (499, 1 << 20), (1 << 20, 53))  # Of parts, and of what is read at once.


@dataclasses.dataclass
class TextExampleFile:
    """An example of a format.

    Attributes:
      format: name of the format.
      file: name of the file, or of the TFDS data set.
      as_bytes: function from documents to the bytes of the file; None: a TFDS data set.
      bad_document: document that cannot be read; None: one without text.
      place: pattern of the place of the third document in the message.
    """

    format: str
    file: str
    as_bytes: Callable | None
    bad_document: list[str] | None
    place: str

    def write(self, documents, directory, monkeypatch):
        """Writes documents; returns what `--input` is."""
        if self.as_bytes is None:
            store_tfds(documents, directory / str(len(documents)), monkeypatch)
            return self.file
        (directory / self.file).write_bytes(self.as_bytes(documents))
        return directory / self.file


def titled_documents(seed):
    """Documents with titles, and with lines that begin as files of other formats do."""
    documents = random_documents(random.Random(seed), 23)
    return [[f"= Title {n} =", "= = Part = =", "WARC/1.0", *d] for n, d in enumerate(documents)]


def read_all(path, monkeypatch, size=1 << 20, **options):
    """Documents of a file in parts of a size, what was counted, and the number of parts."""
    monkeypatch.setattr(corpus, "shard_bytes", lambda _: size)
    monkeypatch.setattr(tfds_splits, "_EXAMPLES_PER_SHARD", 7)
    documents, counts = corpora.read_all(path, **options)
    shards = corpus.find_shards([str(path)], ReadOptions(**options))
    assert counts.pop("reported") == sum(shard.num_bytes for shard in shards)
    return documents, counts, len(shards)


def check_text_format(example, documents, tmp_path, monkeypatch):
    """Reads documents in parts of several sizes, and names the place of a bad one."""
    text_format = TEXT_FORMATS[example.format]
    is_tfds = example.as_bytes is None
    path = example.write(documents, tmp_path, monkeypatch)
    expected = sorted(documents) if is_tfds else documents
    for size, batch_bytes in BLOCK_SIZES:
        monkeypatch.setattr(readers, "BATCH_BYTES", batch_bytes)
        monkeypatch.setattr(readers, "_PART_BYTES", batch_bytes // 3)
        found, counts, parts = read_all(path, monkeypatch, size)
        where = f"{example.format}, in parts of {size} bytes"
        found = sorted(found) if is_tfds else found
        assert found == expected, f"{where}: other documents are read than were written"
        num_characters = sum(len(line) for lines in documents for line in lines)
        assert counts["characters"] == num_characters, f"{where}: characters are counted otherwise"
        assert counts["bytes"] >= counts["characters"], f"{where}: fewer bytes than characters"
        lost = {*counts} & {"malformed_records", "missing_texts", "removed_characters"}
        assert not lost, f"{where}: {sorted(lost)} are counted, and nothing is wrong with the file"
        is_divided = bool(text_format.before or text_format.parts) and size < 1000
        is_expected = is_divided or is_tfds
        wanted = "several, as the format has `before` or `parts`" if is_expected else "one"
        assert (parts > 1) == is_expected, f"{where}: expected parts: {wanted}, got {parts}"
    num_lines = len(documents[0])
    lines = [["a", "b"], ["c", "d"], None, ["e"]] if num_lines > 1 else [["a"], ["c"], None, ["e"]]
    lines[2] = example.bad_document
    path = example.write(lines, tmp_path, monkeypatch)
    if example.bad_document is None:
        _, counts, _ = read_all(path, monkeypatch)
        assert counts["missing_texts"] == 1, f"{example.format}: a document without text counts"
        is_named = re.search(example.place, counts.first_lost)
        assert is_named, f"{example.format}: expected {example.place}, got {counts.first_lost}"
    else:
        with pytest.raises(DataError, match=example.place):
            read_all(path, monkeypatch)
