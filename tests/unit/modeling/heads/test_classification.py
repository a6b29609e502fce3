"""The loss of classification against its formula in numpy."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.modeling.heads import create_head

LABELS = ("a", "b", "c", "d", "e")


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.3])
def test_label_smoothing(smoothing):
    logits = np.random.default_rng(0).normal(size=(3, len(LABELS))).astype(np.float32)
    labels = np.array([4, 0, 2], np.int32)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    on_label = -log_p[np.arange(3), labels]
    wanted = (1 - smoothing) * on_label - smoothing * log_p.mean(-1)
    task = {"name": "classification", "labels": list(LABELS), "label_smoothing": smoothing}
    head = create_head(XLNetConfig.from_dict({"task": task}))
    found = head.loss({"logits": tf.constant(logits)}, {"label": tf.constant(labels)})
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
