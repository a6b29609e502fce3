"""FASTA as the text of a corpus, and as rows to score and to predict."""

import gzip
import io
import random
import re

import pytest
from Bio import SeqIO
from Bio.Seq import Seq
from Bio.SeqRecord import SeqRecord

from data_prep.corpus import readers
from data_prep.tasks.task_data import stream_task
from data_prep.tasks.text_rows import read_text_rows
from official.xlnet.api.vocab import train_vocabulary
from official.xlnet.configs.registry import ROW_FILES, TEXT_FILES, TEXT_FORMATS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.errors import DataError
from tests.conformance.text_formats import (
    BLOCK_SIZES,
    NOT_UTF8,
    TextExampleFile,
    check_text_format,
    read_all,
)
from tests.helpers import corpora
from tests.helpers.corpora import COMPRESS, MARK, as_fasta, random_documents
from tests.helpers.documents import ROOT

EXAMPLE = TextExampleFile("fasta", "a.faa", as_fasta, NOT_UTF8, r"a\.faa, line 6: expected UTF-8")
# The same text in other forms: {file: its bytes}
FORMS = {
    "fasta.txt": lambda d: MARK + as_fasta(d).replace(b"\n", b"\r\n"),
    "fasta_mark.gz": lambda d: gzip.compress(as_fasta(d)),
} | {f"a.faa.{ending}": lambda d, pack=pack: pack(as_fasta(d)) for ending, pack in COMPRESS.items()}


def random_sequences(seed):
    documents = random_documents(random.Random(seed), 23)
    return [[re.sub(r"\W", "", "".join(lines))] for lines in documents]


def test_fasta_is_a_text_format(tmp_path, monkeypatch):
    check_text_format(EXAMPLE, random_sequences("fasta"), tmp_path, monkeypatch)


def random_file(seed):
    """A file of FASTA as people have them, and the same without comments before it."""
    rng = random.Random(seed)
    newline = rng.choice(["\n", "\r\n"])
    before = rng.sample(
        ["", "  ", "; a comment", "#", "! > no header", "", ";MKV"], rng.randint(0, 4)
    )
    lines = []
    for number in range(rng.randint(1, 7)):
        name = f"sp|{number}"
        lines.append(rng.choice([f">{name}", f"> {name} a kinase", f">{name}\tof a mouse ", ">"]))
        for _ in range(rng.randint(0, 4)):
            letters = "".join(rng.choices("ACDEFGHIKLMNPQRSTVWYacgt*-", k=rng.randint(1, 60)))
            parts = [letters[n : n + 10] for n in range(0, len(letters), 10)]
            lines.append(rng.choice([letters, " ".join(parts), f"  {letters}\t", ""]))
    end = rng.choice(["", newline, newline * 3])
    return tuple(newline.join(part) + end for part in ([*before, *lines], lines))


@pytest.mark.parametrize("name", ["a.fasta", "a.faa.gz"])
def test_files_are_read_as_biopython_reads_them(name, tmp_path):
    """Blank lines and comments before the first header, blocks of ten, empty records."""
    path = tmp_path / name
    for seed in range(30):
        whole, plain = random_file(f"{name} {seed}")
        path.write_bytes(gzip.compress(whole.encode()) if name.endswith(".gz") else whole.encode())
        records = [*SeqIO.parse(io.StringIO(plain, newline=None), "fasta")]
        rows = read_text_rows([], str(path))
        assert [row["text"] for row in rows] == [str(record.seq) for record in records]
        assert [row["id"] for row in rows if not row["id"].startswith("line ")] == [
            record.id for record in records if record.id
        ]
        documents, counts = corpora.read_all(path)
        assert documents == [[str(record.seq)] for record in records if record.seq]
        assert not counts["malformed_records"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.fastq", "@r1\nACGT\n+\nIIII\n", "expected FASTA, got FASTQ"),
        ("a.fq.gz", "@r1\nACGT\nAC\n+r1\nIIII\nII\n", "expected FASTA, got FASTQ"),
        ("reads", "@r1\nACGT\n+\nIIII\n", "expected FASTA, got FASTQ"),
        ("a.fa", "@r1\nACGT\n+\nIIII\n", "expected FASTA, got FASTQ"),
        ("a.fa", ";\nACGT\n>a\nAC\n", "a header, which begins with >, before the letters"),
    ],
)
def test_other_files_are_refused(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(gzip.compress(content.encode()) if ".gz" in name else content.encode())
    task = TaskConfig.create(name="classification", text_columns=["seq"])
    for read in (
        lambda: read_text_rows([], str(path)),
        lambda: corpora.read_all(path),
        lambda: [*stream_task(str(path), task)],
    ):
        with pytest.raises(DataError, match=message):
            read()


@pytest.mark.parametrize("lines", [["@ann", "Yes!", "+1"], ["@ann", "Yes", "+1 from me"]])
def test_a_tweet_is_no_fastq(lines, tmp_path):
    path = tmp_path / "tweets.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    assert [row["text"] for row in read_text_rows([], str(path))] == lines


@pytest.mark.parametrize("name", FORMS)
def test_another_form_of_fasta(name, tmp_path, monkeypatch):
    documents = random_sequences(name)
    (tmp_path / name).write_bytes(FORMS[name](documents))
    for size, batch_bytes in BLOCK_SIZES:
        monkeypatch.setattr(readers, "BATCH_BYTES", batch_bytes)
        found, counts, _ = read_all(tmp_path / name, monkeypatch, size)
        assert found == documents
        assert (counts["removed_characters"] > 0) == (name == "fasta.txt")
        assert not counts["malformed_records"] and not counts["missing_texts"]


def test_the_page_names_the_endings():
    text_format = TEXT_FORMATS["fasta"]
    page = (ROOT / "docs/sequences.md").read_text(encoding="utf-8")
    for ending in text_format.endings:
        assert f"`{ending}`" in page
        assert TEXT_FILES[f"*{ending}"] is text_format
        assert ROW_FILES[f"*{ending}"].mark == text_format.mark


def test_sequences_that_biopython_writes_come_with_their_ids(tmp_path):
    """In rows to score and to predict, by the name or the first byte; quotes of mail are text."""
    rng = random.Random(0)
    records = [
        SeqRecord(
            Seq("".join(rng.choices("ACDEFGHIKLMNPQRSTVWY", k=size))), f"sp|P{size}", "", "x y"
        )
        for size in (1, 60, 61, 700)
    ]
    SeqIO.write(records, tmp_path / "a.fasta", "fasta")
    content = (tmp_path / "a.fasta").read_bytes()
    (tmp_path / "b.txt").write_bytes(content)
    (tmp_path / "c.faa.gz").write_bytes(gzip.compress(content.replace(b"\n", b"\r\n")))
    expected = [(record.id, str(record.seq)) for record in records]
    one, two = (
        TaskConfig.create(name="classification", text_columns=x) for x in (["seq"], ["a", "b"])
    )
    for path in (str(tmp_path / name) for name in ("a.fasta", "b.txt", "c.faa.gz")):
        assert [(row["id"], row["text"]) for row in read_text_rows([], path)] == expected
        assert [(x.id, *x.texts) for x in stream_task(path, one)] == expected
        with pytest.raises(DataError, match=r"expected a column .a., got id .*sequence"):
            list(stream_task(path, two))
    path = tmp_path / "mail.txt"
    path.write_text("> Is it true?\nIt is true.\n")
    assert [row["text"] for row in read_text_rows([], str(path))] == [
        "> Is it true?",
        "It is true.",
    ]
    assert corpora.read_all(path)[0] == [["> Is it true?", "It is true."]]
    path.write_text(">a\nMKTAYIAKQR QISFVKSHFS RQ\nLE\n")  # Blocks of ten letters.
    assert read_text_rows([], str(path)) == [{"id": "a", "text": "MKTAYIAKQRQISFVKSHFSRQLE"}]
    (tmp_path / "no").write_text("ACGT\n")
    with pytest.raises(DataError, match="a header, which begins with >"):
        train_vocabulary([str(tmp_path / "no")], str(tmp_path / "v"), 40, format="fasta")


def test_soft_masked_letters_are_counted_as_letters(tmp_path, capfd):
    rng = random.Random(0)
    plain = [">a"] + ["".join(rng.choices("ACGT", k=60)) for _ in range(50)]
    (tmp_path / "plain.fa").write_text("\n".join(plain))
    train_vocabulary([str(tmp_path / "plain.fa")], str(tmp_path / "v"), 24)
    masked = [line[:20] + line[20:40].lower() + line[40:] for line in plain]
    (tmp_path / "masked.fa").write_text("\n".join(masked))
    message = r"tokens \(\d+\.\d%\) are <unk>.*, 33\.\d% of all; most are letters of which it has"
    with pytest.raises(DataError, match=message):
        corpora.prepare(
            str(tmp_path / "masked.fa"),
            str(tmp_path / "data"),
            str(tmp_path / "v"),
            max_unknown=0.2,
        )
