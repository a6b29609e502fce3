"""Ids of special tokens and segments."""

from __future__ import annotations

# File name of the SentencePiece model in data sets and model directories.
VOCAB_FILE = "spiece.model"

# Special ids of the published vocabularies; `xlnet vocab` assigns the same ids.
UNK_ID, BOS_ID, EOS_ID, CLS_ID, SEP_ID, PAD_ID, MASK_ID, EOD_ID, EOP_ID = range(9)
CONTROL_IDS = range(BOS_ID, EOP_ID)  # Never the tokens of a text, even one that spells them out.
NUM_SPECIAL = 9
SPECIAL_PIECES = ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>")

# Segment ids; left padding has an id of its own.
SEGMENT_A, SEGMENT_B, SEGMENT_CLS, SEGMENT_PAD = 0, 1, 2, 4
# Files of HF beside a vocabulary that may change it.
TOKENIZER_JSON, SETTINGS, ADDED_JSON = (
    "tokenizer.json",
    "tokenizer_config.json",
    "added_tokens.json",
)
# Pieces of a vocabulary that keeps white space, where `▁` stands for a space; the longest run is
# always preferred.
WHITESPACE_PIECES = ("\n", "\t", "\r", *("▁" * length for length in range(2, 25)))
WORD_START = "\N{LOWER ONE EIGHTH BLOCK}"  # Marks the space before a word in SentencePiece.
