"""Heads of ranking: kernel pooling or a sequence summary, a softmax over candidates.

Kernel pooling (K-NRM, Xiong et al., 2017) computes soft term frequencies:

    M_ij = cos(q_i, d_j)
    K_k(M) = Σ_i log Σ_j exp(-(M_ij - μ_k)² / 2σ_k²)

Kernel 0 (μ = 1, σ = 0.001) counts exact matches; the ten others have μ = 0.9, 0.7, … -0.9 and
σ = 0.1.
"""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.sections import HeadSections
from official.xlnet.modeling.heads.base import MASKED, Head, register_head
from official.xlnet.modeling.heads.summary_head import SequenceScoreHead
from official.xlnet.tasks.ranking import RankingConfig
from official.xlnet.tokenization.special_tokens import CLS_ID, SEP_ID

MEANS = (1.0, 0.9, 0.7, 0.5, 0.3, 0.1, -0.1, -0.3, -0.5, -0.7, -0.9)
WIDTHS = (0.001,) + (0.1,) * 10
_SMALLEST = 1e-10  # Lower bound of a soft count, to avoid log(0).
_FEATURE_SCALE = 0.01  # As in the K-NRM release; keeps tanh out of saturation.


def kernel_pooling(
    query_BQD: tf.Tensor,
    document_BKD: tf.Tensor,
    is_query_BQ: tf.Tensor,
    is_document_BK: tf.Tensor,
    means: tuple[float, ...] = MEANS,
    widths: tuple[float, ...] = WIDTHS,
) -> tf.Tensor:
    """Computes kernel pooling features of a query and a document.

    Args:
      query_BQD: token vectors of the query, float [B, Q, D].
      document_BKD: token vectors of the document, float [B, K, D].
      is_query_BQ: bool [B, Q], False for query tokens to ignore, such as padding.
      is_document_BK: bool [B, K], False for document tokens to ignore.
      means: mean μ of each kernel, in cosine similarity.
      widths: standard deviation σ of each kernel.

    Returns:
      Log soft term frequencies, float32 [B, number of kernels].
    """
    query_BQD = tf.math.l2_normalize(tf.cast(query_BQD, tf.float32), axis=-1)
    document_BKD = tf.math.l2_normalize(tf.cast(document_BKD, tf.float32), axis=-1)
    similarity_BQK1 = tf.matmul(query_BQD, document_BKD, transpose_b=True)[..., None]
    kernel_BQKk = tf.exp(-tf.square(similarity_BQK1 - means) / (2 * tf.square(tf.constant(widths))))
    kernel_BQKk *= tf.cast(is_document_BK, tf.float32)[:, None, :, None]
    log_count_BQk = tf.math.log(tf.maximum(tf.reduce_sum(kernel_BQKk, axis=2), _SMALLEST))
    return tf.reduce_sum(log_count_BQk * tf.cast(is_query_BQ, tf.float32)[..., None], axis=1)


class KernelRankingHead(Head):
    """Kernel-pooling ranker (K-NRM): score = tanh(w · 0.01 kernel_pooling(query, document) + b).

    The sequences of a unit are the query and then its documents. The first document is more
    relevant than the others. Outputs: `score` float32 [U, S - 1]; documents that are all padding
    are masked. The loss is the cross entropy of the first document in a softmax over all of them:

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
    loss is the same as in `KernelRankingHead`.

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
    return heads[config.task.settings(RankingConfig).scoring](config, **kwargs)


def _softmax_loss(score_US: tf.Tensor) -> tf.Tensor:
    """-log softmax(scores)[0], float32 [U]; the first document is the most relevant one."""
    if score_US.shape[1] == 1:
        return tf.zeros_like(score_US[:, 0])
    return tf.nn.softplus(tf.reduce_logsumexp(score_US[:, 1:], axis=1) - score_US[:, 0])
