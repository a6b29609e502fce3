"""RoBERTa's input formats, against what the records hold."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.modeling.objectives import create_objective
from official.xlnet.tokenization.special_tokens import CLS_ID, EOD_ID, SEP_ID
from tests.helpers.tiny import TOKENS, random_windows, tiny_config

REUSED = 8
ENDS = np.array([[3, 5], [0, 7], [6, 6]])  # Where documents end, in each row.


def inputs_of(name):
    changes = {"network": "bert", "mem_len": 0, "bidirectional": False, "reuse_len": REUSED}
    config = tiny_config(kind="denoising", input_format=name, **changes)
    batch = random_windows(1, batch=3, tokens=TOKENS)
    ids, can_be_target = batch["token_ids"].numpy(), batch["can_be_target"].numpy()
    for row, places in enumerate(ENDS):
        ids[row, places], can_be_target[row, places] = EOD_ID, False
    batch |= {"token_ids": tf.constant(ids), "can_be_target": tf.constant(can_be_target)}
    batch["is_reversed"] = tf.constant([False, True, False])
    return batch, create_objective(ObjectiveSections.of(config))(batch)


@pytest.mark.parametrize("name", ["full_sentences", "doc_sentences"])
def test_inputs_are_contiguous_text_in_one_segment(name):
    batch, task = inputs_of(name)
    ends = np.tile([SEP_ID, CLS_ID], [3, 1])
    text = np.concatenate([batch["token_ids"][:, :REUSED], ends], axis=1)
    places, mask = task.inputs["content_positions"].numpy(), task.mask_BP.numpy() > 0
    is_target = np.zeros(text.shape, bool)
    for row in range(3):
        is_target[row, places[row][mask[row]]] = True
        np.testing.assert_array_equal(
            task.labels_BP[row][mask[row]], text[row, places[row][mask[row]]]
        )
    assert is_target.sum(axis=1).min() > 0
    assert not is_target[:, REUSED:].any() and not (is_target & (text == EOD_ID)).any()
    found = task.inputs["token_ids"].numpy()
    np.testing.assert_array_equal(found[~is_target], text[~is_target])
    assert not task.inputs["segment_ids"].numpy().any()


def test_documents_do_not_attend_to_each_other():
    assert "perm_mask" not in inputs_of("full_sentences")[1].inputs
    found = inputs_of("doc_sentences")[1].inputs["perm_mask"].numpy()
    document = [[0] * 4 + [1] * 2 + [2] * 4, [1] * 7 + [2] * 3, [0] * 7 + [1] * 3]
    document = np.array(document)
    np.testing.assert_array_equal(found, document[:, :, None] != document[:, None])
