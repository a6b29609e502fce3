"""Corpora of a journey: scripts, sizes of documents with heavy tails, formats, awkward text."""

import gzip
import json
import random

from tests.helpers.corpora import CHINESE, WORDS
from tests.helpers.oracles.tokenizer_oracle import nasty_lines

SCRIPTS = ("english", "chinese", "russian", "arabic", "thai", "dna", "mixed", "nasty")
FORMATS = ("txt", "txt.gz", "jsonl", "jsonl.gz", "parquet", "wiki")
_LETTERS = {
    "russian": "абвгдежзийклмнопрстуфхцчшщыьэюя",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "thai": "กขคงจฉชซญดตถทธนบปผฝพฟภมยรลวศสหอะาิีึืุูเแโใไ่้",
}
# Line ends, and what readers remove and count.
_NOT_IN_A_LINE = "\0\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\ufeff\ufffe"
_LINES_OF_A_DOCUMENT, _MOST_LINES = 1.1, 20  # Pareto's shape: few documents hold most lines.


def draw_corpus(rng: random.Random) -> dict:
    return {
        "script": rng.choice(SCRIPTS),
        "documents": rng.choice((20, 30, 50)),
        "format": rng.choice(FORMATS),
        "files": rng.choice((1, 1, 2, 3)),
        "line_end": rng.choice(("\n", "\n", "\r\n")),
        "seed": rng.randrange(1 << 30),
    }


def documents_of(corpus: dict) -> list[list[str]]:
    """Documents of lines, none of them empty."""
    rng = random.Random(corpus["seed"])
    documents = []
    for _ in range(corpus["documents"]):
        lines = min(int(rng.paretovariate(_LINES_OF_A_DOCUMENT)), _MOST_LINES)
        documents.append([_line(corpus["script"], rng) for _ in range(lines)])
    return documents


def _line(script: str, rng: random.Random) -> str:
    if script == "mixed":
        script = rng.choice([name for name in SCRIPTS if name not in ("mixed", "dna")])
    if script == "nasty":
        # A line is what the corpus' format can hold as one, and begins no format of its own.
        [line] = nasty_lines(1, seed=rng.randrange(1 << 30))
        line = "".join(
            " " if c in _NOT_IN_A_LINE else c for c in line.encode(errors="ignore").decode()
        )
        return f"x {line}".strip()[:2000]
    if script == "dna":
        return "".join(rng.choices("ACGT", k=rng.randint(30, 100)))
    if script == "chinese":
        return "".join(rng.choices(CHINESE, k=rng.randint(5, 40))) + "。"
    if script in _LETTERS:
        glue = "" if script == "thai" else " "
        words = _vocabulary(script)
        return glue.join(rng.choices(words, k=rng.randint(3, 25))) + "."
    return " ".join(rng.choices(WORDS, k=rng.randint(3, 30))).capitalize() + "."


def _vocabulary(script: str) -> list[str]:
    rng = random.Random(script)
    letters = _LETTERS[script]
    return ["".join(rng.choices(letters, k=rng.randint(1, 7))) for _ in range(60)]


def write_corpus(corpus: dict, folder) -> list[str]:
    """Writes the files of a corpus; returns the arguments of a verb that reads it."""
    documents, number = documents_of(corpus), corpus["files"]
    folder.mkdir()
    paths = []
    for n in range(number):
        part = documents[len(documents) * n // number : len(documents) * (n + 1) // number]
        paths.append(folder / f"{n}.{corpus['format']}")
        _write(paths[-1], part, corpus)
    return [f"--input={','.join(map(str, paths))}"]


def _write(path, documents: list[list[str]], corpus: dict) -> None:
    if corpus["format"] == "parquet":
        import pyarrow
        import pyarrow.parquet

        texts = ["\n".join(lines) for lines in documents]
        pyarrow.parquet.write_table(pyarrow.table({"n": range(len(texts)), "text": texts}), path)
        return
    end = corpus["line_end"]
    if corpus["format"].startswith("jsonl"):
        rows = [{"id": n, "text": "\n".join(lines)} for n, lines in enumerate(documents)]
        text = "".join(json.dumps(row, ensure_ascii=n % 2 == 0) + end for n, row in enumerate(rows))
    elif corpus["format"] == "wiki":
        pages = [
            f'<doc id="{n}" title="t">{end}{end.join(d)}{end}</doc>{end}'
            for n, d in enumerate(documents)
        ]
        text = "".join(pages)
    else:
        text = (end * 2).join(end.join(lines) for lines in documents) + end
    data = text.encode()
    path.write_bytes(gzip.compress(data) if corpus["format"].endswith("gz") else data)
