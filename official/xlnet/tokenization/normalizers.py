"""Normalizers of SentencePiece: one that changes nothing, and replacements of strings."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable

import sentencepiece
from google.protobuf import message

from official.xlnet.tokenization.sentencepiece_proto import KEEPS_WHITESPACE, parse_model


def make_whitespace_kept(model: message.Message) -> None:
    """Makes a model one that changes nothing in a text; see `text_cleaning.clean`."""
    spec = model.normalizer_spec
    spec.name, spec.remove_extra_whitespaces = KEEPS_WHITESPACE, False
    # A graph needs some normalizer: this one changes a code point that no text has.
    spec.precompiled_charsmap = compiled_rules([("\ufdd0", "\ufffd")])


def compiled_rules(rules: Iterable[tuple[str, str]]) -> bytes:
    """SentencePiece's form of a normalizer that replaces strings by others."""
    written = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        for rule in rules:
            file.write("\t".join(" ".join(f"{ord(c):X}" for c in side) for side in rule) + "\n")
        file.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c d e f g h i j k"] * 50),
            model_writer=written,
            vocab_size=20,
            hard_vocab_limit=False,
            normalization_rule_tsv=file.name,
            minloglevel=2,
        )
    return parse_model(written.getvalue()).normalizer_spec.precompiled_charsmap
