"""Special tokens and segments: the ids that text never becomes, and those of its parts."""

from __future__ import annotations

# The SentencePiece model in data sets and model directories.
VOCAB_FILE = "spiece.model"

# Ids of the published vocabularies; our own are trained with the same.
UNK_ID, BOS_ID, EOS_ID, CLS_ID, SEP_ID, PAD_ID, MASK_ID, EOD_ID, EOP_ID = range(9)
NUM_SPECIAL = 9
SPECIAL_PIECES = ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>")

# Segment ids of classification inputs; left padding has its own.
SEGMENT_A, SEGMENT_B, SEGMENT_CLS, SEGMENT_PAD = 0, 1, 2, 4
