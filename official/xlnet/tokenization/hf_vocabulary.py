"""Vocabularies of HF folders: `tokenizer.json`, `spiece.model` and the tokens added to them.

A folder's vocabulary is one SentencePiece model, whatever files it comes from:

* `tokenizer.json` with symbols of the vocabulary among its added tokens, or alone: its pieces and
  scores, and its normalizer as a SentencePiece normalizer. HF's `StripAccents` drops all marks, and
  its `Precompiled` changes single characters only, where SentencePiece composes several;
* otherwise `spiece.model` as it is.

Tokens that were added are marked pieces of it; see `added_tokens`.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import sys
import unicodedata
from typing import Any

import sentencepiece
from google.protobuf import message

from official.xlnet.errors import DataError, require_data
from official.xlnet.files import file_system
from official.xlnet.files.json_files import read_json
from official.xlnet.files.schema import conform, shown
from official.xlnet.tokenization.added_tokens import piece_of
from official.xlnet.tokenization.normalizers import compiled_rules, make_whitespace_kept
from official.xlnet.tokenization.sentencepiece_proto import (
    CONTROL,
    NORMAL,
    OF_TOKENIZERS,
    UNIGRAM,
    UNKNOWN,
    USER_DEFINED,
    parse_model,
)
from official.xlnet.tokenization.special_tokens import (
    ADDED_JSON,
    CONTROL_IDS,
    NUM_SPECIAL,
    SETTINGS,
    SPECIAL_PIECES,
    TOKENIZER_JSON,
    UNK_ID,
)
from official.xlnet.tokenization.text_cleaning import clean


def hf_vocabulary(model_file: str, model_proto: bytes | None) -> bytes | None:
    """The vocabulary of the HF folder that a file is in, as a SentencePiece model.

    Args:
      model_file: path of the folder's `spiece.model`.
      model_proto: contents of the file; None if there is none.

    Returns:
      `model_proto` if nothing is beside it that changes it.

    Raises:
      DataError: a file is damaged, or the tokenizer is of another kind.
    """
    folder = os.path.dirname(model_file)
    tree = _read_object(folder, TOKENIZER_JSON)
    tokens = _tokens(folder, tree)
    where = os.path.join(folder, TOKENIZER_JSON)
    hf_model = conform(tree.get("model", {}), dict[str, Any], f"{where}: model")
    pieces = hf_model.get("vocab")
    are_pieces = isinstance(pieces, list)
    require_data(
        not tree or bool(are_pieces) or model_proto is not None,
        where,
        "a unigram model",
        shown(hf_model.get("type")),
    )
    if are_pieces and (model_proto is None or any(i < len(pieces) for i in tokens)):
        try:
            model = parse_model(_model_of(json.dumps(tree)))
        except (TypeError, ValueError, RuntimeError) as error:
            raise DataError(f"{where}: expected pieces and a normalizer: {error}") from None
    elif model_proto is None or not tokens:
        return model_proto
    else:
        model = parse_model(model_proto)
    _add(model, tokens, *text_settings(folder))
    return model.SerializeToString(deterministic=True)


def text_settings(folder: str) -> tuple[bool, bool]:
    """Whether the tokenizer of an HF folder lower-cases text, and whether it keeps accents.

    `tokenizer.json` counts where it is there: `XLNetTokenizer` of transformers 5 strips accents
    whatever its settings are.
    """
    if tree := _read_object(folder, TOKENIZER_JSON):
        kinds = {step.get("type") for step in _normalizers(tree)}
        return "Lowercase" in kinds, "NFKD" not in kinds
    settings = _read_object(folder, SETTINGS)
    return settings.get("do_lower_case") is True, settings.get("keep_accents") is True


def _read_object(folder: str, name: str) -> dict[str, Any]:
    path = os.path.join(folder, name)
    return read_json(path, dict[str, Any]) if file_system.is_file(path) else {}


def _tokens(folder: str, tree: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """{id: entry of `tokenizer.json`} of the added tokens, except those that every model has."""
    where = os.path.join(folder, TOKENIZER_JSON)
    listed = conform(tree.get("added_tokens", []), list[dict[str, Any]], f"{where}: added_tokens")
    tokens = {conform(entry.get("id"), int, f"{where}: id"): entry for entry in listed}
    if not tree:
        decoder = _read_object(folder, SETTINGS).get("added_tokens_decoder") or {}
        tokens = {int(token_id): entry for token_id, entry in decoder.items()}
        plain = _read_object(folder, ADDED_JSON).items()
        tokens = {token_id: {"content": content} for content, token_id in plain} | tokens
    for entry in tokens.values():
        require_data(
            not entry.get("single_word"),
            folder,
            "added tokens that may stand in words",
            f"single_word for {entry.get('content')!r}",
        )
    return {token_id: tokens[token_id] for token_id in sorted(tokens) if token_id >= NUM_SPECIAL}


def _normalizers(tree: dict[str, Any]) -> list[dict[str, Any]]:
    normalizer = tree.get("normalizer") or {}
    return normalizer.get("normalizers", [normalizer])


@functools.lru_cache(maxsize=4)
def _model_of(text: str) -> bytes:
    """The model of a `tokenizer.json`: its pieces with scores, and its normalizer."""
    tree = json.loads(text)
    model, normalizers = parse_model(b""), _normalizers(tree)
    for i, (piece, score) in enumerate(tree["model"]["vocab"]):
        piece_type = UNKNOWN if i == UNK_ID else NORMAL
        if i in CONTROL_IDS and piece == SPECIAL_PIECES[i]:
            piece_type = CONTROL
        model.pieces.add(piece=piece, score=score, type=piece_type)
    model.trainer_spec.model_type = UNIGRAM
    model.normalizer_spec.name = OF_TOKENIZERS
    model.normalizer_spec.add_dummy_prefix = True
    # Words that are split at spaces first leave no piece for a space alone.
    splits_words = "WhitespaceSplit" in json.dumps(tree.get("pre_tokenizer"))
    model.normalizer_spec.remove_extra_whitespaces = splits_words
    if any(step.get("type") == "Prepend" for step in normalizers):
        make_whitespace_kept(model)
    else:
        charsmaps = (step.get("precompiled_charsmap") for step in normalizers)
        charsmap = next(filter(None, charsmaps), "")
        model.normalizer_spec.precompiled_charsmap = _of_characters(base64.b64decode(charsmap))
    return model.SerializeToString()


def _of_characters(charsmap: bytes) -> bytes:
    """A normalizer that changes characters as another does, one by one, and drops marks."""
    spec = parse_model(b"")
    spec.pieces.add(piece="<unk>", type=UNKNOWN)
    spec.pieces.add(piece="a")
    spec.normalizer_spec.precompiled_charsmap = charsmap
    spec.normalizer_spec.add_dummy_prefix = False
    spec.normalizer_spec.remove_extra_whitespaces = False
    processor = sentencepiece.SentencePieceProcessor(model_proto=spec.SerializeToString())
    characters = [
        character
        for character in map(chr, range(1, sys.maxunicode + 1))
        if unicodedata.category(character) not in ("Cn", "Co", "Cs") and character != "▁"
    ]
    rules = []
    for old, normalized in zip(characters, processor.normalize(characters), strict=True):
        is_mark = unicodedata.category(old)[0] == "M"
        new = "" if is_mark else normalized.replace("▁", " ")
        if new != old:
            rules.append((old, new))
    return compiled_rules(rules)


def _add(
    model: message.Message,
    tokens: dict[int, dict[str, Any]],
    lowercase: bool,
    keep_accents: bool,
) -> None:
    """Adds marked pieces: tokens beyond the vocabulary at their ids, then aliases of others."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    num_pieces = len(model.pieces)
    for token_id in sorted(tokens, key=lambda token_id: (token_id < num_pieces, token_id)):
        entry = tokens[token_id]
        content = conform(entry.get("content"), str, f"added token {token_id}: content")
        while len(model.pieces) < token_id:  # Ids that no token has.
            model.pieces.add(piece=f"<unused {len(model.pieces)}>", type=CONTROL)
        is_special = entry.get("special") is True
        is_normalized = entry.get("normalized", not is_special) is True
        text = processor.normalize(clean(content, lowercase, keep_accents)).removeprefix("▁")
        model.pieces.add(
            piece=piece_of(text, is_normalized),
            type=USER_DEFINED,
            content=content,
            id=token_id,
            is_normalized=is_normalized,
            is_special=is_special,
        )
    are_different = len({piece.piece for piece in model.pieces}) == len(model.pieces)
    contents = [entry.get("content") for entry in tokens.values()]
    require_data(are_different, "added tokens", "different texts", shown(contents, 200))
