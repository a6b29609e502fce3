"""The benchmark of extended vocabularies: the same held-out text for both."""

import random

import pytest

from benchmarks.learning import vocabulary_extension as benchmark
from official import xlnet
from tests.helpers.corpora import as_text, domain_text, random_documents
from tests.helpers.wrong_input import make_world


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    world = make_world(tmp_path_factory.mktemp("world"))
    (world / "domain.txt").write_text(domain_text(), encoding="utf-8")
    general, extended = str(world / "language"), str(world / "extended")
    xlnet.extend_vocabulary(general, [str(world / "domain.txt")], extended, 19)
    return general, extended


def test_every_tenth_document_is_held_out(tmp_path):
    documents = as_text(random_documents(random.Random(4), 31)).strip().split("\n\n")
    (tmp_path / "text.txt").write_text("\n\n".join(documents), encoding="utf-8")
    benchmark.split(str(tmp_path / "text.txt"), str(tmp_path / "a"))
    parts = [(tmp_path / f"a{end}.txt").read_text().strip() for end in ("", "_heldout")]
    trained, held_out = (part.split("\n\n") for part in parts)
    assert held_out == [documents[9], documents[19], documents[29]]
    assert sorted(trained + held_out) == sorted(documents)


def test_passages_are_the_same_text_and_fit_both(tmp_path, models):
    """Words of the text in their order, but for passages with unknown characters."""
    text = domain_text(seed=5, number=20)
    assert "µg" in text or "β" in text
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    passages = benchmark.passages(str(tmp_path / "text.txt"), models)
    assert len(passages) > 30
    rest = " ".join(text.split())
    for passage in passages:
        _, found, rest = rest.partition(passage)
        assert found
    seq_len = xlnet.load_config(models[0]).data.seq_len
    lengths = []
    for model in models:
        tokenizer = xlnet.load_tokenizer(model)
        ids = tokenizer.encode_batch(passages)
        assert all(0 not in row.tolist() for row in ids)
        lengths.append(sum(map(len, ids)))
        assert max(map(len, ids)) <= seq_len
    assert lengths[1] < lengths[0]


def test_loss_per_character_does_not_depend_on_the_number_of_tokens(models):
    texts = ["the water", "of the tachycardia was"]
    for model in models:
        total = sum(score.total for score in xlnet.score(model, texts))
        found = benchmark.loss_per_character(model, texts)
        assert found == pytest.approx(-total / (9 + 22), rel=1e-6)


def test_table():
    rows = [
        benchmark.Row("general model", 0, [2.5], [1.25]),
        benchmark.Row("trained further", 7, [1.25, 1.75], [2.0, 2.5]),
    ]
    assert benchmark._table(rows, 2.0, 1.5).splitlines()[2:] == [
        "| general model | 0 | 2.500 | 1.250 |",
        "| trained further | 7 | 1.500 (1.250 to 1.750) | 2.250 (2.000 to 2.500) |",
        "",
        "Tokens per word of the domain: 2.00 before, 1.50 with new pieces.",
    ]
