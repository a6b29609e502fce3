"""Document ranking heads: kernel pooling and sequence summary, with a softmax over candidates."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.sections import HeadSections
from official.xlnet.modeling.heads.base import Head, register_head
from official.xlnet.modeling.heads.summary_head import MASKED, SequenceScoreHead
from official.xlnet.tasks.ranking.kernel_pooling import MEANS, kernel_pooling
from official.xlnet.tokenization.special_tokens import CLS_ID, SEP_ID

_FEATURE_SCALE = 0.01  # As in the K-NRM release; keeps tanh out of saturation.


class KernelRankingHead(Head):
    """Kernel-pooling ranker (K-NRM): score = tanh(w · 0.01 kernel_pooling(query, document) + b).

    The sequences of a unit are the query and then its documents, of which the first is more
    relevant than the others. Outputs: `score` float32 [U, S - 1]; documents that are all padding
    are masked. The loss is that of the first document under a softmax over all of them:

        loss = -log(exp(score_0) / Σ_s exp(score_s))

    With two documents it is the pairwise log loss (RankNet), log(1 + exp(worse - better)); with
    more, the ranking loss of MT-DNN. It is 0 for a unit with one document.

    Args:
      config: sections of the experiment.
    """

    def __init__(self, config: HeadSections, **kwargs):
        super().__init__(config, **kwargs)
        self.score = self.dense(1, "score", activation="tanh")

    def build(self, input_shape):
        self.build_parts(score=len(MEANS))
        super().build(input_shape)

    def call(self, content_USTD, inputs, seed=None):
        is_mark_UST = (inputs["token_ids"] == SEP_ID) | (inputs["token_ids"] == CLS_ID)
        is_text_UST = ~(is_mark_UST | inputs["is_padding"])
        scores = []
        for document in range(1, content_USTD.shape[1]):
            features_UK = kernel_pooling(
                content_USTD[:, 0],
                content_USTD[:, document],
                is_text_UST[:, 0],
                is_text_UST[:, document],
            )
            scores.append(self.score(_FEATURE_SCALE * features_UK))
        score_US = tf.concat(scores, axis=1)
        is_empty_US = tf.reduce_all(inputs["is_padding"][:, 1:], axis=2)
        return {"score": tf.where(is_empty_US, MASKED, score_US)}

    def loss(self, outputs, labels):
        return _softmax_loss(outputs["score"])


class SummaryRankingHead(SequenceScoreHead):
    """Cross-encoder ranker: score = w · summary(document, query) + b.

    Each sequence of a unit is one document with the query. Outputs: `score` float32 [U, S]. The
    loss is that of `KernelRankingHead`.

    Args:
      config: sections of the experiment; uses `model` and `task.summary`.
    """

    logits_name = "score"

    def loss(self, outputs, labels):
        return _softmax_loss(outputs["score"])


@register_head("ranking")
def ranking_head(config: HeadSections, **kwargs) -> Head:
    """Creates the ranking head that `task.scoring` selects: `kernel` or `summary`."""
    heads = {"kernel": KernelRankingHead, "summary": SummaryRankingHead}
    return heads[config.task.scoring](config, **kwargs)


def _softmax_loss(score_US: tf.Tensor) -> tf.Tensor:
    """-log softmax(scores)[0], float32 [U]; the first document is the most relevant one."""
    if score_US.shape[1] == 1:
        return tf.zeros_like(score_US[:, 0])
    return tf.nn.softplus(tf.reduce_logsumexp(score_US[:, 1:], axis=1) - score_US[:, 0])
