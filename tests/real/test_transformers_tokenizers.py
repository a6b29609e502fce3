"""Tokenizers that transformers 5 and 4 save: their ids here, in the graph, and there again."""

import json
import os
import pathlib
import random
import re
import subprocess
import sys
import sysconfig

import pytest
import tensorflow as tf

from official.xlnet.api.vocab import train_vocabulary
from official.xlnet.checkpoints.convert.hf_tokenizer import write_vocabulary_files
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from official.xlnet.tokenization.hf_vocabulary import text_settings
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.oracles.tokenizer_oracle import real_lines

pytest.importorskip("transformers")

pytestmark = pytest.mark.slow
SCRIPT = pathlib.Path(__file__).with_name("transformers_tokenizers.py")
PYTHONS = {"5": sys.executable, "4": os.environ.get("XLNET_HF4_PYTHON", "")}
NUM_PIECES = 2000
TOKENS = ["<new>", "zuzu", "of the", "<ent>", "[E1]", ".", "-", '"']
SCRIPTS = [  # A line of each, from the Universal Declaration of Human Rights.
    "所有人都應該享有自由與平等。",
    "모든 사람은 태어날 때부터 자유롭다.",
    "मनुष्य जन्म से स्वतन्त्र हैं",
    "មនុស្សទាំងអស់ កើតមកមានសេរីភាព",
    "มนุษย์ทั้งหลายเกิดมามีอิสระ",
    "يولد جميع الناس أحرارًا",
    "Все люди рождаются свободными",
    "Tất cả mọi người sinh ra đều được tự do",
    "すべての人間は（1948.12.10）自由である",
]


@pytest.fixture(scope="module")
def lines():
    rng = random.Random(7)
    found = [" ".join(line.split()) for line in real_lines(3000)] + SCRIPTS * 30
    for number in range(0, len(found), 2):
        words = found[number].split(" ")
        for _ in range(rng.randrange(3)):
            token, place = rng.choice(TOKENS), rng.randrange(len(words))
            words[place] = rng.choice([f"{words[place]} {token}", f"{token}{words[place]}", token])
        found[number] = " ".join(words)
    return found


def run(version, folder, **job):
    if not os.path.isfile(PYTHONS[version]):
        pytest.skip("XLNET_HF4_PYTHON names no interpreter")
    job |= {"torch": sysconfig.get_path("purelib")}
    (folder / "job.json").write_text(json.dumps(job))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    command = [PYTHONS[version], SCRIPT, folder / "job.json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def assert_same_ids(found, expected, lines, where):
    """The same for every line, but where two segmentations tie: their sums are rounded otherwise.

    Such lines, e.g. `=====`, have the same pieces in another order.
    """
    wrong = [row for row in zip(lines, found, expected, strict=True) if row[1] != row[2]]
    assert [text for text, a, b in wrong if sorted(a) != sorted(b)] == [], where
    assert len(wrong) <= len(lines) / 500, where


def ids_of(folder):
    return json.loads((folder / "ids.json").read_text())


def tokenizer_of(folder):
    """The tokenizer of a folder that has no model."""
    return Tokenizer(str(folder / "spiece.model"), *text_settings(str(folder)))


@pytest.mark.nightly
@pytest.mark.parametrize("version", PYTHONS)
def test_same_ids_there_here_in_the_graph_and_back(version, vocab_file, lines, tmp_path):
    made = tmp_path / "made"
    run(version, tmp_path, vocab=os.path.dirname(vocab_file), output=str(made), lines=lines)
    folders = sorted(made.iterdir())
    assert len(folders) == (8 if version == "4" else 4)
    back = []
    for folder in folders:
        tokenizer, expected = tokenizer_of(folder), ids_of(folder)
        found = [ids.tolist() for ids in tokenizer.encode_batch(lines)]
        assert_same_ids(found, expected, lines, folder.name)
        graph = GraphTokenizer(tokenizer)(tf.constant(lines[::3]))
        assert graph.to_list() == found[::3], folder.name
        added = {i: text for i, text in tokenizer.added_tokens.items() if i >= NUM_PIECES}
        assert len(added) == len(tokenizer) - NUM_PIECES == 5 * ("tokens" in folder.name)
        for text in lines[:200]:
            ids, offsets = tokenizer.encode_with_offsets(text)
            assert ids == tokenizer.encode(text)
            for i, (start, end) in zip(ids, offsets, strict=True):
                if i in added:
                    assert text[start:end].lower() == added[i].lower()
        written = tmp_path / "written" / folder.name
        written.mkdir(parents=True)
        settings = write_vocabulary_files(
            str(written), tokenizer.model_proto, tokenizer.lowercase, tokenizer.keep_accents
        )
        (written / "tokenizer_config.json").write_text(json.dumps(settings))
        (written / "config.json").write_text('{"model_type": "xlnet"}')
        assert tokenizer_of(written).model_proto == tokenizer.model_proto
        back.append(written)
    run(version, tmp_path, folders=[str(folder) for folder in back], lines=lines)
    for folder, source in zip(back, folders, strict=True):
        found, expected, texts = ids_of(folder), ids_of(source), lines
        if "slow" in folder.name:  # Which splits `125,` after it was chosen; scores cannot say so.
            rows = zip(found, expected, lines, strict=True)
            kept = [row for row in rows if not re.search(r"\d,", row[2])]
            found, expected, texts = zip(*kept, strict=True)
        assert_same_ids(found, expected, texts, folder.name)


@pytest.mark.parametrize("version", PYTHONS)
def test_white_space_that_is_kept_there_and_back(version, tmp_path):
    folder, paths = tmp_path / "folder", sorted(pathlib.Path(__file__).parent.glob("*.py"))
    folder.mkdir()
    train_vocabulary([*map(str, paths)], str(tmp_path), 700, keep_whitespace=True)
    tokenizer = Tokenizer(str(tmp_path / "spiece.model"))
    settings = write_vocabulary_files(str(folder), tokenizer.model_proto, False, False)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "config.json").write_text('{"model_type": "xlnet"}')
    rng, texts = random.Random(0), [path.read_text() for path in paths]
    parts = ["\n", "\t", "  ", " " * 24, "\r\n", "''", "naïve", "1,", "the", " x"]
    texts += ["".join(rng.choices(parts, k=rng.randint(0, 9))) for _ in range(500)]
    texts = [text for text in texts if " " * 25 not in text and "<" not in text]
    run(version, tmp_path, folders=[str(folder)], lines=texts)
    expected = tokenizer.encode(texts)
    assert_same_ids(ids_of(folder), expected, texts, version)
    (folder / "spiece.model").unlink()  # As transformers 5 saves it.
    alone = tokenizer_of(folder)
    assert alone.keep_whitespace and alone.encode(texts) == expected
    assert GraphTokenizer(alone)(tf.constant(texts)).to_list() == expected
