"""Heads and services of classes and numbers of words or letters."""

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
from official.xlnet.tasks.token_classification import TagConfig
from official.xlnet.tasks.token_classification.windows import MARKS, letter_windows, windows_of
from official.xlnet.tokenization.graph.offsets import OffsetTokenizer


@register_head("token_classification")
class TokenClassificationHead(Head):
    """Classifies each token: logits = W · dropout(content) + b, with cross-entropy loss.

    Outputs: `logits` float32 [U, T, num_logits].
    Labels: `tags` int32 [U, 1, T], -1 at tokens that the loss ignores; or, where several letters
    have one token, `tag_counts` float32 [U, 1, T, C], how many of them are of each class.

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
        if "tag_counts" in labels:
            log_UTC = tf.nn.log_softmax(outputs["logits"])
            return -tf.reduce_sum(labels["tag_counts"][:, 0] * log_UTC, axis=[1, 2])
        tags_UT = labels["tags"][:, 0]
        loss_UT = tf.nn.sparse_softmax_cross_entropy_with_logits(
            tf.maximum(tags_UT, 0), outputs["logits"]
        )
        return tf.reduce_sum(tf.where(tags_UT >= 0, loss_UT, 0.0), axis=1)

    def num_items(self, labels):
        if "tag_counts" in labels:
            return tf.reduce_sum(labels["tag_counts"], axis=[1, 2, 3])
        return tf.reduce_sum(tf.cast(labels["tags"][:, 0] >= 0, tf.float32), axis=1)


@register_head("token_regression")
class TokenRegressionHead(TokenClassificationHead):
    """Predicts a number for each token, with squared-error loss.

    The output is scale · z + mean, and the loss is computed on z, as in `RegressionHead`. Labels:
    `numbers` float32 [U, 1, T, 3]: of the words or letters of a token, how many there are, the
    mean of their labels, and the sum of their squared distances from it.

    Args:
      config: sections of the experiment; uses `model` and `task`.
    """

    def __init__(self, config: HeadSections, num_logits: int = 1, **kwargs):
        super().__init__(config, num_logits, **kwargs)
        self.mean, self.scale = config.task.target()

    def call(self, content_USTD, inputs, seed=None):
        outputs = super().call(content_USTD, inputs, seed)
        return {"logits": outputs["logits"] * self.scale + self.mean}

    def loss(self, outputs, labels):
        number_UT, mean_UT, squares_UT = tf.unstack(labels["numbers"][:, 0], axis=-1)
        error_UT = number_UT * tf.square((outputs["logits"][..., 0] - mean_UT) / self.scale)
        return tf.reduce_sum(error_UT + squares_UT / self.scale**2, axis=1)

    def num_items(self, labels):
        return tf.reduce_sum(labels["numbers"][:, 0, :, 0], axis=1)


@register_service("token_classification")
class TagService(TaskService):
    """Splits texts at white space, or into letters, and tags these; see `TokenClassification`.

    For the arguments see `TaskService`.

    Outputs:
      words, tags: string [B, W], padded on the right with "".
      probabilities: float32 [B, W, C], padded with 0.
      labels: string [B, C].
    """

    text_names = ("text",)
    per_token = ("logits",)

    _task: TagConfig

    def __init__(self, model, tokenizer, settings):
        super().__init__(model, tokenizer, settings)
        if self._task.label_unit == "letter":
            self._offsets = OffsetTokenizer(tokenizer.plain, tokenizer)

    def from_texts(self, texts):
        words, windows = self._words(texts["text"])
        logits_UTC = self._network(self.units(windows.features))["logits"]
        window_N = windows.window_N
        column_N = tf.shape(logits_UTC)[1] - MARKS - tf.gather(windows.size_U, window_N)
        column_N += windows.place_N
        logits_NC = tf.gather_nd(logits_UTC, tf.stack([window_N, column_N], axis=1))
        words_BW = words.to_tensor("")
        is_word_BW1 = tf.cast(words_BW != "", tf.float32)[..., None]
        answers = self.answers(words.with_values(logits_NC).to_tensor(0.0), is_word_BW1)
        return {"words": words_BW, **answers}

    def _words(self, text):
        """The words or letters of texts, and their windows."""
        length, most = self.settings.max_length, self.settings.max_windows
        checked = functools.partial(checked_windows, "text", most=most)
        if self._task.label_unit == "letter":
            letters = tf.strings.unicode_split(text, "UTF-8")
            ids, starts, _ = self._offsets(text)
            return letters, letter_windows(ids, starts, letters.row_lengths(), length, checked)
        plain = tf.strings.regex_replace(text, self.tokenizer.white_space, " ")
        words = tf.strings.split(plain)
        pieces = self.tokenizer(words.values)
        return words, windows_of(pieces, words.row_lengths(), length, checked)

    def from_tokens(self, inputs):
        """Computes the probabilities of each token; the first token of a word has its tag."""
        logits_BTC = self._network(with_sequence_axis(inputs))["logits"]
        labels = repeated(self._task.labels, tf.shape(logits_BTC)[0])
        return {"probabilities": tf.nn.softmax(logits_BTC), "labels": labels}

    def answers(self, logits_BWC, is_word_BW1):
        """Computes the answers for padded words."""
        probability_BWC = tf.nn.softmax(logits_BWC)
        tags_BW = tf.gather(tf.constant(self._task.labels), tf.argmax(logits_BWC, axis=-1))
        return {
            "tags": tf.where(is_word_BW1[..., 0] > 0, tags_BW, ""),
            "probabilities": probability_BWC * is_word_BW1,
            "labels": repeated(self._task.labels, tf.shape(logits_BWC)[0]),
        }


@register_service("token_regression")
class NumberService(TagService):
    """Splits texts as `TagService`, and answers with a number for each word or letter.

    Outputs:
      words: string [B, W], padded on the right with "".
      scores: float32 [B, W], padded with 0.
    """

    def from_tokens(self, inputs):
        """Computes the score of each token; the first token of a word has its score."""
        return {"scores": self._network(with_sequence_axis(inputs))["logits"][..., 0]}

    def answers(self, logits_BWC, is_word_BW1):
        return {"scores": (logits_BWC * is_word_BW1)[..., 0]}
