"""Service of extractive question answering: answers in the text, from sliding windows.

The windows of a long paragraph are made in the graph.
"""

from __future__ import annotations

import functools

import tensorflow as tf

from official.xlnet.errors import require_config
from official.xlnet.modeling.heads.base import MASKED
from official.xlnet.serving.services.base import (
    TaskService,
    register_service,
    with_sequence_axis,
)
from official.xlnet.serving.services.input_checks import checked_windows
from official.xlnet.tasks.question_answering import INPUTS, AnswerConfig
from official.xlnet.tasks.question_answering.task import NO_SPAN
from official.xlnet.tasks.question_answering.windows import Windows
from official.xlnet.tokenization.graph.offsets import OffsetTokenizer
from official.xlnet.tokenization.special_tokens import SEGMENT_A, SEP_ID

_PLACE = 1 << 31  # Exceeds any character index; packs (start, end) into one int64.


@register_service("question_answering_simple")
@register_service("question_answering")
class QuestionService(TaskService):
    """Extractive question answering; see `QuestionAnswering`.

    Outputs:
      answer: string [B]; "" if there is no answer.
      start, end: code points of the paragraph, end exclusive, int32 [B]; -1 if there is no answer.
      best_span: the best span even if there is no answer, string [B].
      score: log probability of the best span, float32 [B].
      null_score: log odds that there is no answer, float32 [B].

    For the arguments see `TaskService`.

    Raises:
      ConfigError: the maximum length does not fit a question and part of its paragraph.
    """

    _task: AnswerConfig
    num_texts = 2
    token_types = {**TaskService.token_types, "may_start": tf.bool}
    text_names = INPUTS
    per_token = ("start_logits", "end_logits")

    def __init__(self, model, tokenizer, settings):
        super().__init__(model, tokenizer, settings)
        self._offsets = OffsetTokenizer(tokenizer.plain, tokenizer)
        require_config(
            settings.max_length >= self._task.query_length + 4,
            "max_length",
            f"room for a question of {self._task.query_length} tokens and part of its paragraph",
            settings.max_length,
        )

    def from_texts(self, texts):
        question = self.tokenizer(texts["question"])[:, : self._task.query_length]
        ids, starts, ends = self._offsets(texts["context"])
        length, most = self.settings.max_length, self.settings.max_windows
        checked = functools.partial(checked_windows, "context", most=most)
        windows = Windows.of(question, ids, length, self._task.window_stride, checked)
        outputs = self._network(self.units(windows.features(question, ids, length)))
        context = tf.strings.unicode_transcode(texts["context"], "UTF-8", "UTF-8")
        return self._answers(context, windows, outputs, starts, ends)

    def from_tokens(self, inputs):
        """Computes the outputs of the head for each window; the client combines them."""
        is_text = (inputs["segment_ids"] == SEGMENT_A) & ~inputs["is_padding"]
        inputs["can_answer"] = is_text & (inputs["token_ids"] != SEP_ID)
        outputs = self._network(with_sequence_axis(inputs))
        return {name: x for name, x in outputs.items() if name not in self.per_token}

    def _answers(self, context, windows, outputs, starts, ends):
        """Selects the best span over all windows of each paragraph."""
        text_W, num_texts = windows.text_W, starts.nrows(tf.int32)
        score_WAE = outputs["start_log_prob"][..., None] + outputs["end_log_prob"]
        base_W = tf.gather(tf.cast(starts.row_starts(), tf.int32), text_W) + windows.start_W

        def offset(ragged, position_WAE):
            """Converts positions from the right end of the input to character offsets."""
            last_W = base_W + windows.length_W + windows.tail_W - 1
            index = tf.maximum(last_W[:, None, None] - position_WAE, 0)
            values = tf.concat([ragged.values, [0]], axis=0)
            return tf.gather(values, tf.minimum(index, tf.size(ragged.values)))

        end_WAE = offset(ends, outputs["end_position"])
        start_WAE = offset(starts, outputs["start_position"][..., None])
        start_WAE = tf.broadcast_to(start_WAE, tf.shape(end_WAE))
        is_span = (score_WAE > NO_SPAN) & (end_WAE > start_WAE)
        text_X = tf.repeat(text_W, tf.reduce_prod(tf.shape(score_WAE)[1:]))
        score_X = tf.reshape(tf.where(is_span, score_WAE, MASKED), [-1])
        score_B = tf.math.unsorted_segment_max(score_X, text_X, num_texts)
        # Ties go to the first span in the text.
        place_X = tf.cast(start_WAE, tf.int64) * _PLACE + tf.cast(end_WAE, tf.int64)
        is_best_X = score_X == tf.gather(score_B, text_X)
        place_X = tf.where(is_best_X, tf.reshape(place_X, [-1]), tf.int64.max)
        place_B = tf.math.unsorted_segment_min(place_X, text_X, num_texts)
        has_span_B = score_B > NO_SPAN
        start_B = tf.where(has_span_B, tf.cast(place_B // _PLACE, tf.int32), 0)
        end_B = tf.where(has_span_B, tf.cast(place_B % _PLACE, tf.int32), 0)
        span_B = tf.strings.substr(context, start_B, end_B - start_B, unit="UTF8_CHAR")
        null_B = tf.math.unsorted_segment_min(outputs["no_answer"], text_W, num_texts)
        is_answer_B = has_span_B & (null_B <= self._task.null_threshold)
        return {
            "answer": tf.where(is_answer_B, span_B, ""),
            "start": tf.where(is_answer_B, start_B, -1),
            "end": tf.where(is_answer_B, end_B, -1),
            "best_span": span_B,
            "score": score_B,
            "null_score": null_B,
        }
