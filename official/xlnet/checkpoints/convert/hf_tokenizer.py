"""Tokenizer files of an HF folder, written from a vocabulary.

`tokenizer.json` says in HF's terms what our tokenizer does: the same ids for every text, but where
a piece with a comma (`▁1,`) is split, which HF does by its score. `PreTrainedTokenizerFast` reads
it as it is in both versions of transformers; `XLNetTokenizer` of version 5 would put a normalizer
of its own in its place, which drops the vowels of Thai and the syllables of Korean.
"""

from __future__ import annotations

import base64
import os
import sys
import unicodedata
from typing import Any

from google.protobuf import message

from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.json_files import write_json
from official.xlnet.tokenization.added_tokens import added_pieces
from official.xlnet.tokenization.sentencepiece_proto import (
    KEEPS_WHITESPACE,
    OF_TOKENIZERS,
    UNIGRAM,
    USER_DEFINED,
    USER_DEFINED_SCORE,
    parse_model,
)
from official.xlnet.tokenization.special_tokens import (
    ADDED_JSON,
    CLS_ID,
    SEP_ID,
    SPECIAL_PIECES,
    TOKENIZER_JSON,
    UNK_ID,
    VOCAB_FILE,
)

_COMMA_PENALTY = 100.0  # As HF: a piece that ends in a digit and a comma is never the best.


def write_vocabulary_files(
    folder: str, model_proto: bytes, lowercase: bool, keep_accents: bool
) -> dict[str, Any]:
    """Writes `spiece.model`, and if needed `tokenizer.json` and `added_tokens.json`.

    Args:
      folder: an existing directory.
      model_proto: the vocabulary, with its added tokens.
      lowercase: whether text is lower-cased.
      keep_accents: whether accents are kept.

    Returns:
      What `tokenizer_config.json` says of them.
    """
    tokens, plain = added_pieces(parse_model(model_proto).pieces), without_tokens(model_proto)
    write_bytes(os.path.join(folder, VOCAB_FILE), plain)
    model = parse_model(plain)
    beyond = {token.content: token.id for token in tokens.values() if token.id >= len(model.pieces)}
    if beyond:
        write_json(os.path.join(folder, ADDED_JSON), beyond)
    has_form = model.normalizer_spec.add_dummy_prefix and model.trainer_spec.model_type == UNIGRAM
    if not has_form or any(piece.type > USER_DEFINED for piece in model.pieces):
        return {"tokenizer_class": "XLNetTokenizer"}
    special = [
        _token(i, content, is_normalized=False, is_special=True)
        for i, content in enumerate(SPECIAL_PIECES)
    ]
    added = [
        _token(token.id, token.content, token.is_normalized, token.is_special)
        for token in sorted(tokens.values(), key=lambda token: token.id)
    ]
    pre_tokenizer: dict[str, Any] = _METASPACE
    if model.normalizer_spec.remove_extra_whitespaces:
        pre_tokenizer = {
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"}, _METASPACE],
        }
    tree = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special + added,
        "normalizer": {
            "type": "Sequence",
            "normalizers": _normalizers(model, lowercase, keep_accents),
        },
        "pre_tokenizer": None if _keeps_whitespace(model) else pre_tokenizer,
        "post_processor": _template(),
        "decoder": _DECODER if _keeps_whitespace(model) else _METASPACE,
        "model": {
            "type": "Unigram",
            "unk_id": UNK_ID,
            "vocab": _scores(model),
            "byte_fallback": False,
        },
    }
    write_json(os.path.join(folder, TOKENIZER_JSON), tree, indent=None)
    names = {f"{name.strip('<>')}_token": name for name in SPECIAL_PIECES[:7]}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "padding_side": "left",
        "bos_token": names.pop("s_token"),
        "eos_token": names.pop("/s_token"),
        **names,
    }


def without_tokens(model_proto: bytes) -> bytes:
    """Returns the vocabulary without added tokens; symbols among them become user-defined."""
    model = parse_model(model_proto)
    tokens = added_pieces(model.pieces)
    if not tokens:
        return model_proto
    for token in tokens.values():
        if token.id < min(tokens):
            model.pieces[token.id].type = USER_DEFINED
    del model.pieces[min(tokens) :]
    while model.pieces[-1].piece == f"<unused {len(model.pieces) - 1}>":
        del model.pieces[-1]
    return model.SerializeToString(deterministic=True)


_METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
_DECODER = {  # For texts whose white space is kept.
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ],
}


def _token(token_id: int, content: str, is_normalized: bool, is_special: bool) -> dict[str, Any]:
    return {
        "id": token_id,
        "content": content,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": is_normalized,
        "special": is_special,
    }


def _scores(model: message.Message) -> list[list[Any]]:
    splits_commas = model.normalizer_spec.name not in (OF_TOKENIZERS, KEEPS_WHITESPACE)
    scores = []
    for piece in model.pieces:
        text = piece.piece
        is_split = len(text) > 1 and text[-1] == "," and text[-2].isdigit()
        score = piece.score - _COMMA_PENALTY * (is_split and splits_commas)
        if piece.type == USER_DEFINED and _keeps_whitespace(model):
            score = USER_DEFINED_SCORE * (len(text.encode()) - 1)
        scores.append([text, score])
    return scores


def _keeps_whitespace(model: message.Message) -> bool:
    return model.normalizer_spec.name == KEEPS_WHITESPACE


def _normalizers(
    model: message.Message, lowercase: bool, keep_accents: bool
) -> list[dict[str, Any]]:
    """HF's normalizers for `text_cleaning.clean` and SentencePiece's own."""
    if _keeps_whitespace(model):
        spaces = [{"type": "Prepend", "prepend": "▁"}, _replace({"String": " "}, "▁")]
        return [{"type": "Lowercase"}, *spaces] if lowercase else spaces
    is_hf_normalizer = model.normalizer_spec.name == OF_TOKENIZERS
    normalizers: list[dict[str, Any]] = [
        _replace({"String": quotes}, '"') for quotes in ("``", "''")
    ]
    if not keep_accents:
        normalizers.append({"type": "NFKD"})
        if is_hf_normalizer:
            normalizers.append({"type": "StripAccents"})
        else:
            normalizers.append(_replace({"Regex": _combining()}, ""))
    if lowercase:
        normalizers.append({"type": "Lowercase"})
    if charsmap := model.normalizer_spec.precompiled_charsmap:
        # SentencePiece composes; HF's form of its normalizer changes single characters only.
        if not is_hf_normalizer:
            normalizers.append({"type": "NFKC"})
        encoded = base64.b64encode(charsmap).decode()
        normalizers.append({"type": "Precompiled", "precompiled_charsmap": encoded})
    return [*normalizers, _replace({"Regex": " {2,}"}, " ")]


def _replace(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def _combining() -> str:
    """A regular expression of the characters that combine with the one before."""
    codes = {code for code in range(sys.maxunicode + 1) if unicodedata.combining(chr(code))}
    firsts, lasts = (sorted(code for code in codes if code + k not in codes) for k in (-1, 1))
    spans = (f"\\x{{{a:X}}}-\\x{{{b:X}}}" for a, b in zip(firsts, lasts, strict=True))
    return f"[{''.join(spans)}]"


def _template() -> dict[str, Any]:
    """`A SEP [B SEP] CLS`, with their segments."""

    def text(name: str, segment: int) -> list[dict[str, Any]]:
        return [
            {"Sequence": {"id": name, "type_id": segment}},
            {"SpecialToken": {"id": SPECIAL_PIECES[SEP_ID], "type_id": segment}},
        ]

    cls = [{"SpecialToken": {"id": SPECIAL_PIECES[CLS_ID], "type_id": 2}}]
    return {
        "type": "TemplateProcessing",
        "single": [*text("A", 0), *cls],
        "pair": [*text("A", 0), *text("B", 1), *cls],
        "special_tokens": {
            name: {"id": name, "ids": [i], "tokens": [name]}
            for i, name in enumerate(SPECIAL_PIECES)
            if i in (CLS_ID, SEP_ID)
        },
    }
