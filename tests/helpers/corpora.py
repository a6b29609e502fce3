"""Small corpora and vocabularies for tests of data preparation.

Chinese stands for scripts without spaces; real text of others is where the project was made.
"""

import bz2
import functools
import gzip
import json
import lzma
import pathlib
import pickle
import random
import tempfile

import zstandard

from data_prep.corpus.corpus import find_shards
from data_prep.corpus.formats import Counts
from data_prep.corpus.readers import read_documents
from data_prep.record_settings import Settings
from data_prep.records.token_files import sentence_end_bit, token_dtype, write_token_files
from data_prep.settings import ReadOptions
from official.xlnet.api import prepare as door
from official.xlnet.api.vocab import train_vocabulary
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.schema import SCALAR_FEATURES, Manifest
from official.xlnet.errors import DataError
from official.xlnet.tokenization.special_tokens import EOD_ID
from official.xlnet.tokenization.tokenizer import Tokenizer

UDHR = pathlib.Path(__file__).parents[3] / "shared/data/udhr"
WORDS = (  # noqa: SIM905
    "the of and to in is that it was for on are as with his they at be this from have or by one "
    "had not but what all were when we there can an your which their said if do will each about "
    "how up out them then she many some so these would other into has more her two like him see "
    "time could no make than first been its who now people my made over did down only way find "
    "use may water long little very after words called just where most know 1,000 Zürich naïve"
).split()


def random_documents(rng: random.Random, number: int, most_lines: int = 7) -> list[list[str]]:
    """Documents of lines of sentences of words."""
    return [
        [
            " ".join(_sentence(rng) for _ in range(rng.randint(1, 3)))
            for _ in range(rng.randint(1, most_lines))
        ]
        for _ in range(number)
    ]


def _sentence(rng: random.Random) -> str:
    words = [rng.choice(WORDS) for _ in range(rng.randint(1, 11))]
    return " ".join(words).capitalize() + rng.choice([".", ".", "?", "!", ", etc.", " ..."])


def as_text(documents: list[list[str]]) -> str:
    """Plain text with a blank line between documents."""
    return "\n\n".join("\n".join(lines) for lines in documents) + "\n"


@functools.cache
def vocabulary_dir(size: int = 211) -> str:
    """Directory of a vocabulary of `WORDS`, made once a run."""
    directory = tempfile.mkdtemp()
    text = as_text(random_documents(random.Random(0), 300))
    pathlib.Path(directory, "text.txt").write_text(text, encoding="utf-8")
    train_vocabulary([f"{directory}/text.txt"], directory, size)
    return directory


def recipe(**training) -> dict[str, dict]:
    """Sections of a small pre-training run with this vocabulary, and settings of training."""
    sizes = {"num_layers": 1, "d_model": 22, "num_heads": 2, "d_inner": 37, "mem_len": 13}
    data = {"seq_len": 29, "reuse_len": 11, "num_predict": 5, "num_lanes": 6}
    return {
        "model": {"vocab_size": 211, **sizes},
        "data": {**data, "heldout_fraction": 0.3},
        "training": {"batch_size": 6, "learning_rate": 0.003, **training},
    }


def data_config(**changes) -> XLNetConfig:
    """A configuration for small corpora."""
    data = dict(
        seq_len=29,
        reuse_len=11,
        num_lanes=6,
        bidirectional=True,
        heldout_fraction=0.0,
        lowercase=False,
        keep_accents=False,
        seed=3,
        max_unknown=1.0,
    )
    assert changes.keys() <= data.keys()
    config = XLNetConfig()
    for name, value in (data | changes).items():
        setattr(config.data, name, value)
    return config


def prepare(inputs, output, vocab=None, num_workers=1, **changes):
    """Prepares a data set, with settings of `data_config` and options of `prepare` changed."""
    settings = vars(data_config().data)
    config = data_config(**{name: x for name, x in changes.items() if name in settings})
    options = {name: x for name, x in changes.items() if name not in settings}
    arguments = inputs, vocab or vocabulary_dir(), config, output
    return door.prepare(*arguments, num_workers=num_workers, **options)


def read_all(*paths, **options) -> tuple[list[list[str]], Counts]:
    """Documents of files, or of a frame, and what was counted; `reported` is the progress."""
    counts, documents, reported = Counts(), [], []
    options = ReadOptions(**options)
    for shard in pickle.loads(pickle.dumps(find_shards(list(map(str, paths)), options))):
        for batch in read_documents(shard, options, counts, reported.append):
            documents += batch
    counts["reported"] = sum(reported)
    return documents, counts


def contents(directory, pattern="[!.]*") -> dict[str, bytes]:
    """{file name: bytes} of the files in a directory that match a pattern."""
    return {path.name: path.read_bytes() for path in sorted(pathlib.Path(directory).glob(pattern))}


def documents_in(directory, split="train") -> list[list[int]]:
    """Tokens of the documents of a split, in the reuse parts of forward lanes; the last is cut."""
    manifest, documents = Manifest.load(str(directory)), [[]]
    for name in [*manifest.splits[split].files][:: 2 if manifest.bidirectional else 1]:
        for window in read_lane(pathlib.Path(directory, name)):
            for token in window["token_ids"][: manifest.reuse_len]:
                documents[-1].append(token)
                if token == EOD_ID:
                    documents.append([])
    return documents


def read_lane(path: pathlib.Path) -> list[dict]:
    """Windows of a record file: {feature: value}, `token_ids` as a list."""
    import tensorflow as tf

    windows = []
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        features = tf.train.Example.FromString(record).features.feature
        windows.append({name: [*value.int64_list.value] for name, value in features.items()})
        assert features.keys() == {"token_ids", *SCALAR_FEATURES}
        windows[-1] |= {name: windows[-1][name][0] for name in SCALAR_FEATURES}
    return windows


_TERMS = (  # noqa: SIM905
    "tachycardia bradycardia myocarditis pericarditis cardiomyopathy stenosis thrombosis embolism "
    "angioplasty stent β-blocker µg 2,500 3,750"
).split()


def domain_text(seed: int = 3, number: int = 60) -> str:
    """Documents of sentences of `WORDS` and of terms of a domain."""
    rng = random.Random(seed)
    lines = []
    for document in random_documents(rng, number):
        words = " ".join(document).split()
        for _ in range(len(words) // 3):
            words.insert(rng.randrange(len(words)), rng.choice(_TERMS))
        lines.append(" ".join(words))
    return "\n\n".join(lines) + "\n"


CHINESE = (  # noqa: SIM905
    "人 权 自由 平等 世界 国家 社会 教育 法律 保护 家庭 工作 生活 所有 每个 必须 应当 享有 尊重 "
    "信仰 言论 和平 正义 发展 合作 文化 科学 艺术 的 和 在 有 不 是 与 及 他们 我们 或 对 为 由 "
    "从 到 以 "
    "TensorFlow 2024年 10月 第3条"
).split()


def chinese_documents(seed: int, number: int) -> list[list[str]]:
    """Documents of lines of sentences without spaces."""
    rng = random.Random(seed)
    return [
        [
            "".join(_chinese_sentence(rng) for _ in range(rng.randint(1, 4)))
            for _ in range(rng.randint(1, 5))
        ]
        for _ in range(number)
    ]


def _chinese_sentence(rng: random.Random) -> str:
    clauses = ["".join(rng.choices(CHINESE, k=rng.randint(3, 9))) for _ in range(rng.randint(1, 3))]
    return "，".join(clauses) + rng.choice("。。。！？")


@functools.cache
def chinese_vocabulary() -> str:
    """Directory of a vocabulary of `CHINESE`, made once a run."""
    directory = pathlib.Path(tempfile.mkdtemp())
    lines = [line for document in chinese_documents(0, 200) for line in document]
    (directory / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    train_vocabulary([str(directory / "text.txt")], str(directory), 150, keep_accents=True)
    return str(directory)


def vocabulary_of(text: str, directory: pathlib.Path) -> str:
    """Trains the largest vocabulary, up to 1,500 pieces, that a text has enough for."""
    (directory / "text.txt").write_text(text, encoding="utf-8")
    train = functools.partial(
        train_vocabulary, [str(directory / "text.txt")], str(directory), keep_accents=True
    )
    try:
        train(1500)
    except DataError as error:  # ... expected --size of at most 203
        train(int(str(error).rsplit(" ", 1)[1]))
    return str(directory)


def sentences(lines: list[str], vocab: str, directory: pathlib.Path) -> list[str]:
    """The sentences that data preparation finds in a document."""
    (directory / "document.txt").write_text("\n".join(lines), encoding="utf-8")
    settings = Settings(
        **dict(seq_len=29, reuse_len=11, num_lanes=1, bidirectional=False, heldout_fraction=0.0),
        **dict(lowercase=False, keep_accents=True, seed=0),
    )
    [shard] = find_shards([str(directory / "document.txt")], settings)
    tokenizer = Tokenizer(f"{vocab}/spiece.model", keep_accents=True)
    vocabulary = tokenizer.model_file, tokenizer.sha256
    write_token_files(0, shard, settings, *vocabulary, str(directory), lambda number: None)
    dtype = token_dtype(tokenizer.vocab_size)
    bit, found, sentence = sentence_end_bit(dtype), [], ""
    for token in memoryview((directory / "000000.tokens").read_bytes()).cast("H").tolist()[:-1]:
        sentence += tokenizer.id_to_piece(token & (bit - 1)).replace("▁", " ")
        if token & bit:
            found.append(sentence.strip())
            sentence = ""
    return [*found, sentence.strip()]


# The same documents as files of every format; a bad one is None, or has a lone surrogate.
MARK = b"\xef\xbb\xbf"
COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    # Of two frames.
    "zst": lambda data: zstandard.compress(data[:99]) + zstandard.compress(data[99:]),
}


def encoded(text: str) -> bytes:
    r"""UTF-8, in which `\udcff` is the byte 0xff."""
    return text.encode(errors="surrogateescape")


def as_bytes(documents, old="", new=""):
    return encoded(as_text(documents).replace(old, new) if old else as_text(documents))


def as_json(documents, number="7", field="text"):
    lines = []
    for place, document in enumerate(documents):
        text = json.dumps(document and "\n".join(document), ensure_ascii=place % 2 == 0)
        lines.append(f'{{"score": {number}, "{field}": {text}, "text_": null}}')
    return "\n".join(lines).encode()


def as_wiki(documents):
    pages = ("\n\n".join(document) for document in documents)
    return encoded("".join(f'<doc id="{i}">\n{x}\n\n</doc>\n' for i, x in enumerate(pages)))


def as_wikitext(documents, end="\n"):
    """Sections are set off by blank lines; a document begins with its title."""
    lines = (end.join(f" {line} {end} " for line in document) for document in documents)
    return end.join(f" {end}{document}" for document in lines).encode()


def as_fasta(documents):
    """As Biopython writes them: 60 letters on a line."""
    lines = [
        f"{line}\n"
        for number, (text,) in enumerate(documents)
        for line in (f">r{number} of many", *(text[n : n + 60] for n in range(0, len(text), 60)))
    ]
    return encoded("".join(lines))


def warc_record(kind, content, content_type="text/plain"):
    """A record of WARC 1.0 (ISO 28500): header, empty line, content, two line ends."""
    names = {"WARC-Type": kind, "WARC-Record-ID": "<urn:uuid:7d2c>", "Content-Type": content_type}
    names["Content-Length"] = str(len(content))
    header = "".join(f"{name}: {value}\r\n" for name, value in names.items())
    return f"WARC/1.0\r\n{header}\r\n".encode() + content + b"\r\n\r\n"


def wet_records(documents):
    about = warc_record("warcinfo", b"Software-Info: ia-web-commons\r\n", "application/warc-fields")
    pages = (encoded("\n".join(document)) for document in documents)
    return [about, *(warc_record("conversion", page) for page in pages)]


def as_wet(documents):
    return b"".join(wet_records(documents))


def as_parquet(documents):
    import pyarrow
    import pyarrow.parquet as pq

    sink = pyarrow.BufferOutputStream()
    table = pyarrow.table({"text": [document and "\n".join(document) for document in documents]})
    pq.write_table(table, sink, compression="NONE", use_dictionary=False, row_group_size=7)
    return sink.getvalue().to_pybytes()


def store_tfds(documents, directory, patch):
    """Stores a TFDS data set `stories` in a directory, which TFDS then looks in."""
    import tensorflow as tf
    import tensorflow_datasets as tfds

    patch.setenv("TFDS_DATA_DIR", str(directory))
    patch.setattr(tfds.core.constants, "DATA_DIR", str(directory))
    texts = [encoded("\n".join(document)) for document in documents]
    tfds.dataset_builders.store_as_tfds_dataset(
        name="stories",
        version="1.0.0",
        features=tfds.features.FeaturesDict({"text": tfds.features.Text()}),
        split_datasets={"train": tf.data.Dataset.from_tensor_slices({"text": texts})},
        data_dir=str(directory),
    )
