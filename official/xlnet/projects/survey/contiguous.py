"""RoBERTa's input formats: contiguous text, which the reuse parts of windows are."""

from __future__ import annotations

import copy
import dataclasses

import tensorflow as tf

from official.xlnet.configs.registry import INPUT_FORMATS
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.modeling.objectives.base import CreateObjective, Objective
from official.xlnet.tokenization.special_tokens import CLS_ID, EOD_ID, SEGMENT_A, SEP_ID

# Values after the text in each feature of a window: SEP and CLS.
_END = {
    "token_ids": (SEP_ID, CLS_ID),
    "segment_ids": (SEGMENT_A, SEGMENT_A),
    "is_word_start": (1, 1),
    "can_be_target": (0, 0),
}


@INPUT_FORMATS.register("full_sentences")
def full_sentences(create: CreateObjective, config: ObjectiveSections) -> Objective:
    """FULL-SENTENCES (Liu et al., RoBERTa, section 4.2): contiguous text, across documents.

    An input is `text | SEP | CLS` in one segment. The text is the reuse part of a window, so that
    each token is read once in an epoch; EOD is between documents. A and B are not read. RoBERTa
    begins and ends inputs at sentence ends, and this format after `data.reuse_len` tokens.

    Args:
      create: creates the objective.
      config: sections of the experiment; `data.seq_len` of the objective is `data.reuse_len` + 2.
    """
    data = copy.deepcopy(config.data)
    data.seq_len, data.reuse_len = config.data.reuse_len + 2, 0
    objective = create(dataclasses.replace(config, data=data))

    def of_text(batch):
        text = {
            name: _with_end(batch[name][:, : config.data.reuse_len], _END[name]) for name in _END
        }
        return objective({**batch, **text})

    return of_text


@INPUT_FORMATS.register("doc_sentences")
def doc_sentences(create: CreateObjective, config: ObjectiveSections) -> Objective:
    """DOC-SENTENCES: as `full_sentences`, but tokens attend only to their own document.

    RoBERTa ends an input with its document and has more inputs in a batch in return; here the next
    document follows in the same input, unseen, so that a batch has as many tokens, too.
    """
    objective = full_sentences(create, config)

    def of_text(batch):
        task = objective(batch)
        token_ids_BT = batch["token_ids"][:, : config.data.reuse_len]
        is_end_BT = _with_end(tf.cast(token_ids_BT == EOD_ID, tf.int32), (0, 0))
        # EOD follows its document, or, in reversed text, comes before it.
        forward_BT, reversed_BT = (
            tf.cumsum(is_end_BT, axis=1, exclusive=exclusive) for exclusive in (True, False)
        )
        document_BT = tf.where(batch["is_reversed"][:, None], reversed_BT, forward_BT)
        is_other_BTT = document_BT[:, :, None] != document_BT[:, None, :]
        return task._replace(inputs={**task.inputs, "perm_mask": is_other_BTT})

    return of_text


def _with_end(x_BT: tf.Tensor, end: tuple[int, int]) -> tf.Tensor:
    """[B, T] → [B, T + 2]."""
    end_B2 = tf.tile(tf.cast([end], x_BT.dtype), [tf.shape(x_BT)[0], 1])
    return tf.concat([x_BT, end_B2], axis=1)
