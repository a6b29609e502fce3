"""SentencePiece models as protocol buffers: the pieces of a `spiece.model` and their scores.

The library's generated classes are incompatible with TensorFlow's protobuf version, so the message
class is built here, from the fields that the project reads or writes.
"""

from __future__ import annotations

import functools

from absl import logging
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from official.xlnet.tokenization.special_tokens import CONTROL_IDS, SPECIAL_PIECES

NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4  # ModelProto.SentencePiece.Type.
UNIGRAM = 1  # TrainerSpec.ModelType.
# `normalizer_spec.name` of a model from HF's `tokenizer.json`, and of one that keeps white space.
OF_TOKENIZERS, KEEPS_WHITESPACE = "tokenizers", "keeps_whitespace"
UNKNOWN_PENALTY = 10  # An unknown character scores so much less than any piece: kUnkPenalty.
USER_DEFINED_SCORE = 0.1  # Of SentencePiece, for each byte of such a piece beyond the first.


def parse_model(model_proto: bytes) -> message.Message:
    """Parses the contents of a `spiece.model` file.

    Special tokens become control symbols if they are not, so that text with `<sep>` in it does not
    become SEP.

    Returns:
      A `ModelProto` with `pieces` (each with `piece`, `score`, `type` and, of an added token, its
      `content`, `id` and what HF knows of it), `trainer_spec` and `normalizer_spec`.
      Fields that are not declared here are preserved.
    """
    model = _model_class()()
    model.ParseFromString(model_proto)
    for i in CONTROL_IDS:
        if i < len(model.pieces) and model.pieces[i].piece == SPECIAL_PIECES[i]:
            model.pieces[i].type = CONTROL
    return model


def obstacle_to_export(model_proto: bytes) -> str:
    """Says why a model cannot run as TensorFlow operations; empty if it can."""
    model = parse_model(model_proto)
    if model.trainer_spec.model_type != UNIGRAM:
        return ""
    odd = [p.piece for p in model.pieces if not NORMAL <= p.type <= USER_DEFINED]
    for expected, holds, got in (
        ("with add_dummy_prefix", model.normalizer_spec.add_dummy_prefix, "one without"),
        ("with a normalizer", bool(model.normalizer_spec.precompiled_charsmap), "none"),
        ("without unused or byte pieces", not odd, " ".join(odd[:3])),
    ):
        if not holds:
            return f"expected a unigram model {expected}, got {got}"
    return ""


def warn_of_export(model_proto: bytes) -> None:
    """Warns that a model with this vocabulary cannot be exported, if it cannot."""
    if obstacle := obstacle_to_export(model_proto):
        logging.warning(
            "xlnet export will refuse a model with this vocabulary, which all other commands read; "
            "to serve the model, train a vocabulary with xlnet vocab, or a BPE one: %s",
            obstacle,
        )


@functools.cache
def _model_class() -> type[message.Message]:
    field = descriptor_pb2.FieldDescriptorProto
    once, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    fields = {
        "Piece": [
            ("piece", 1, once, field.TYPE_STRING, None),
            ("score", 2, once, field.TYPE_FLOAT, None),
            ("type", 3, once, field.TYPE_INT32, str(NORMAL)),
            # Of added tokens; SentencePiece leaves numbers from 200 on to others.
            ("content", 200, once, field.TYPE_STRING, None),
            ("id", 201, once, field.TYPE_INT32, None),
            ("is_normalized", 202, once, field.TYPE_BOOL, None),
            ("is_special", 203, once, field.TYPE_BOOL, None),
        ],
        "TrainerSpec": [
            ("model_type", 3, once, field.TYPE_INT32, str(UNIGRAM)),
            ("vocab_size", 4, once, field.TYPE_INT32, None),
        ],
        "NormalizerSpec": [
            ("name", 1, once, field.TYPE_STRING, None),
            ("precompiled_charsmap", 2, once, field.TYPE_BYTES, None),
            ("add_dummy_prefix", 3, once, field.TYPE_BOOL, "true"),
            ("remove_extra_whitespaces", 4, once, field.TYPE_BOOL, "true"),
        ],
        "Model": [
            ("pieces", 1, many, field.TYPE_MESSAGE, "Piece"),
            ("trainer_spec", 2, once, field.TYPE_MESSAGE, "TrainerSpec"),
            ("normalizer_spec", 3, once, field.TYPE_MESSAGE, "NormalizerSpec"),
        ],
    }
    file = descriptor_pb2.FileDescriptorProto(
        name="xlnet_vocabulary.proto", package="xlnet_vocabulary", syntax="proto2"
    )
    for message_name, entries in fields.items():
        message_type = file.message_type.add(name=message_name)
        for name, field_number, label, type_, extra in entries:  # type: ignore[attr-defined]
            entry = message_type.field.add(name=name, number=field_number, label=label, type=type_)
            if type_ == field.TYPE_MESSAGE:
                entry.type_name = f".{file.package}.{extra}"
            elif extra:
                entry.default_value = extra
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.Model"))
