"""Head and service of token classification, such as named entity recognition."""

from __future__ import annotations

import functools

import tensorflow as tf

from official.xlnet.configs.sections import HeadSections
from official.xlnet.modeling.heads.base import Head, num_classes, register_head
from official.xlnet.modeling.kernels.stateless_dropout import dropout
from official.xlnet.serving.services.base import (
    TaskService,
    register_service,
    repeated,
    with_sequence_axis,
)
from official.xlnet.serving.services.input_checks import checked_windows
from official.xlnet.tasks.token_classification.windows import MARKS, windows_of


@register_head("token_classification")
class TokenClassificationHead(Head):
    """Classifies each token: logits = W · dropout(content) + b, with cross-entropy loss.

    Outputs: `logits` float32 [U, T, num_logits].
    Labels: `tags` int32 [U, 1, T], -1 at tokens that the loss ignores.

    Args:
      config: sections of the experiment; uses `model`.
      num_logits: number of tags. None: the number of `task.labels`.
    """

    def __init__(self, config: HeadSections, num_logits: int | None = None, **kwargs):
        super().__init__(config, **kwargs)
        self.num_logits = num_classes(config) if num_logits is None else num_logits
        self.logits = self.dense(self.num_logits, "logits")

    def build(self, input_shape):
        self.build_parts(logits=self.config.model.d_model)
        super().build(input_shape)

    def call(self, content_USTD, inputs, seed=None):
        content_UTD = tf.cast(content_USTD[:, 0], tf.float32)
        if seed is not None:
            content_UTD = dropout(content_UTD, self.config.model.dropout, seed)
        return {"logits": self.logits(content_UTD)}

    def loss(self, outputs, labels):
        tags_UT = labels["tags"][:, 0]
        loss_UT = tf.nn.sparse_softmax_cross_entropy_with_logits(
            tf.maximum(tags_UT, 0), outputs["logits"]
        )
        return tf.reduce_sum(tf.where(tags_UT >= 0, loss_UT, 0.0), axis=1)

    def num_items(self, labels):
        return tf.reduce_sum(tf.cast(labels["tags"][:, 0] >= 0, tf.float32), axis=1)


@register_service("token_classification")
class TagService(TaskService):
    """Splits texts at white space and tags the words; see `TokenClassification`.

    For the arguments see `TaskService`.

    Outputs:
      words, tags: string [B, W], padded on the right with "".
      probabilities: float32 [B, W, C], padded with 0.
      labels: string [B, C].
    """

    text_names = ("text",)
    per_token = ("logits",)

    def from_texts(self, texts):
        plain = tf.strings.regex_replace(texts["text"], self.tokenizer.white_space, " ")
        words = tf.strings.split(plain)
        most = self.settings.max_windows
        windows = windows_of(
            self.tokenizer(words.values),
            words.row_lengths(),
            self.settings.max_length,
            functools.partial(checked_windows, "text", most=most),
        )
        logits_UTC = self._network(self.units(windows.features))["logits"]
        window_N = windows.window_N
        column_N = tf.shape(logits_UTC)[1] - MARKS - tf.gather(windows.size_U, window_N)
        column_N += windows.place_N
        logits_NC = tf.gather_nd(logits_UTC, tf.stack([window_N, column_N], axis=1))
        return self._tags(words, words.with_values(logits_NC))

    def from_tokens(self, inputs):
        """Computes the probabilities of each token; the first token of a word has its tag."""
        logits_BTC = self._network(with_sequence_axis(inputs))["logits"]
        labels = repeated(self._task.labels, tf.shape(logits_BTC)[0])
        return {"probabilities": tf.nn.softmax(logits_BTC), "labels": labels}

    def _tags(self, words, logits):
        probability_BWC = tf.nn.softmax(logits.to_tensor(0.0))
        best_BW = tf.argmax(probability_BWC, axis=-1)
        words_BW = words.to_tensor("")
        is_word_BW = words_BW != ""
        return {
            "words": words_BW,
            "tags": tf.where(is_word_BW, tf.gather(tf.constant(self._task.labels), best_BW), ""),
            "probabilities": probability_BWC * tf.cast(is_word_BW, tf.float32)[..., None],
            "labels": repeated(self._task.labels, tf.shape(words_BW)[0]),
        }
