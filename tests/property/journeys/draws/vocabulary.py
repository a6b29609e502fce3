"""Vocabularies of a journey: ours, and SentencePiece's own with the special pieces in place."""

import io
import random

import sentencepiece

from tests.property.journeys.draws.corpus import documents_of

KINDS = ("ours", "ours", "ours", "bpe", "unigram", "byte_fallback", "words_of_others")
_SPECIAL = ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]


def draw_vocabulary(rng: random.Random) -> dict:
    return {
        "kind": rng.choice(KINDS),
        "size": rng.choice((97, 150, 211)),
        # Pieces that the model has more, or fewer, than the vocabulary; None: it does not say.
        "model_has_more": rng.choice((0, 0, 0, 1, 53, 173, -1 if rng.random() < 0.3 else 0)),
    }


def train(vocabulary: dict, corpus: dict, lowercase: bool, path) -> int:
    """Trains a vocabulary that is not ours; returns its size."""
    if vocabulary["kind"] == "words_of_others":  # Trained on text of another script.
        corpus = {**corpus, "script": "english" if corpus["script"] != "english" else "russian"}
    lines = [line for document in documents_of(corpus) for line in document]
    lines = [line.lower() if lowercase else line for line in lines]
    has_bytes = vocabulary["kind"] == "byte_fallback"
    kind = "unigram" if vocabulary["kind"] in ("unigram", "words_of_others") else "bpe"
    size = vocabulary["size"] + 256 * has_bytes + len({c for line in lines for c in line})
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type=kind,
        vocab_size=size,
        hard_vocab_limit=False,
        byte_fallback=has_bytes,
        control_symbols=_SPECIAL,
        character_coverage=0.98 if has_bytes or corpus["script"] in ("nasty", "mixed") else 1.0,
        max_sentence_length=1 << 16,
        num_threads=1,
        minloglevel=3,
    )
    path.parent.mkdir()
    path.write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).vocab_size()
