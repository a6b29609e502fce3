"""Question answering service, with sliding windows over long paragraphs in the graph."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.errors import ConfigError
from official.xlnet.serving.services.base import (
    TaskService,
    register_service,
    with_sequence_axis,
)
from official.xlnet.serving.services.input_checks import check
from official.xlnet.tasks.question_answering import INPUTS
from official.xlnet.tokenization.graph.offsets import OffsetTokenizer
from official.xlnet.tokenization.graph.ragged import ranges, slices
from official.xlnet.tokenization.special_tokens import SEGMENT_A, SEP_ID

_NO_SPAN = -1e29  # Scores at or below this are of masked spans.
_MASKED = -1e30  # Score of masked spans.
_LENGTH_BONUS = 0.01  # As in `task.most_context`.
_PLACE = 1 << 31  # Exceeds any character index; packs (start, end) into one int64.


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

    num_texts = 2
    takes_may_start = True
    text_names = INPUTS
    per_token = ("start_logits",)

    def __init__(self, model, tokenizer, settings):
        super().__init__(model, tokenizer, settings)
        self._offsets = OffsetTokenizer(tokenizer.plain, tokenizer)
        if settings.max_length < self._task.query_length + 4:
            raise ConfigError(
                f"max_length: expected room for a question of {self._task.query_length} tokens "
                f"and part of its paragraph, got {settings.max_length}"
            )

    def from_texts(self, texts):
        question = self.tokenizer(texts["question"])[:, : self._task.query_length]
        ids, starts, ends = self._offsets(texts["context"])
        windows = self._windows(question, ids)
        outputs = self._network(with_sequence_axis(windows["inputs"]))
        context = tf.strings.unicode_transcode(texts["context"], "UTF-8", "UTF-8")
        return self._answers(context, windows, outputs, starts, ends)

    def from_tokens(self, inputs):
        """Computes the outputs of the head for each window; the client combines them."""
        is_text = (inputs["segment_ids"] == SEGMENT_A) & ~inputs["is_padding"]
        inputs["can_answer"] = is_text & (inputs["token_ids"] != SEP_ID)
        outputs = self._network(with_sequence_axis(inputs))
        outputs.pop("start_logits")
        return outputs

    def _windows(self, question, ids):
        """Returns the model inputs of all windows of all paragraphs, and their positions."""
        query_B = tf.cast(question.row_lengths(), tf.int32)
        size_B = tf.cast(ids.row_lengths(), tf.int32)
        room_B = self.settings.max_length - query_B - 3
        step_B = tf.minimum(self._task.window_stride, room_B)
        number_B = 1 + (tf.maximum(size_B - room_B, 0) + step_B - 1) // step_B
        most = self.settings.max_windows
        message = [
            f"context: expected up to {most} windows, got ",
            tf.strings.as_string(tf.reduce_max(tf.concat([[0], number_B], axis=0))),
        ]
        number_B = check(tf.reduce_all(number_B <= most), message, number_B)
        text_W, place_W = ranges(number_B)
        start_W = place_W * tf.gather(step_B, text_W)
        length_W = tf.minimum(tf.gather(room_B, text_W), tf.gather(size_B, text_W) - start_W)
        columns = [slices(ids, text_W, start_W, length_W), tf.gather(question, text_W)]
        inputs = self.pack(columns)
        tail_W = tf.gather(query_B, text_W) + 3
        first_W = self.settings.max_length - tail_W - length_W
        index_WT = tf.range(self.settings.max_length) - first_W[:, None]
        can_answer_WT = (index_WT >= 0) & (index_WT < length_W[:, None])
        best = _most_context(tf.cast(ids.row_starts(), tf.int32), text_W, start_W, length_W)
        flat = tf.where(can_answer_WT)
        may_start_WT = tf.scatter_nd(
            flat, tf.cast(best, tf.int32), tf.cast(tf.shape(can_answer_WT), tf.int64)
        )
        inputs |= {"can_answer": can_answer_WT, "may_start": may_start_WT == 1}
        return {
            "inputs": inputs,
            "text_W": text_W,
            "start_W": start_W,
            "last_W": length_W + tail_W - 1,
            "num_texts": tf.size(query_B),
        }

    def _answers(self, context, windows, outputs, starts, ends):
        """Selects the best span over all windows of each paragraph."""
        text_W, number = windows["text_W"], windows["num_texts"]
        score_WAE = outputs["start_log_prob"][..., None] + outputs["end_log_prob"]
        base_W = tf.gather(tf.cast(starts.row_starts(), tf.int32), text_W) + windows["start_W"]

        def offset(ragged, position_WAE):
            """Converts positions from the right end of the input to character offsets."""
            index_W11 = (base_W + windows["last_W"])[:, None, None]
            index = tf.maximum(index_W11 - position_WAE, 0)
            values = tf.concat([ragged.values, [0]], axis=0)
            return tf.gather(values, tf.minimum(index, tf.size(ragged.values)))

        end_WAE = offset(ends, outputs["end_position"])
        start_WAE = offset(starts, outputs["start_position"][..., None])
        start_WAE = tf.broadcast_to(start_WAE, tf.shape(end_WAE))
        is_span = (score_WAE > _NO_SPAN) & (end_WAE > start_WAE)
        text_X = tf.repeat(text_W, tf.reduce_prod(tf.shape(score_WAE)[1:]))
        score_X = tf.reshape(tf.where(is_span, score_WAE, _MASKED), [-1])
        score_B = tf.math.unsorted_segment_max(score_X, text_X, number)
        # Ties go to the first span in the text.
        place_X = tf.cast(start_WAE, tf.int64) * _PLACE + tf.cast(end_WAE, tf.int64)
        is_best_X = score_X == tf.gather(score_B, text_X)
        place_X = tf.where(is_best_X, tf.reshape(place_X, [-1]), tf.int64.max)
        place_B = tf.math.unsorted_segment_min(place_X, text_X, number)
        has_span_B = score_B > _NO_SPAN
        start_B = tf.where(has_span_B, tf.cast(place_B // _PLACE, tf.int32), 0)
        end_B = tf.where(has_span_B, tf.cast(place_B % _PLACE, tf.int32), 0)
        span_B = tf.strings.substr(context, start_B, end_B - start_B, unit="UTF8_CHAR")
        null_B = tf.math.unsorted_segment_min(outputs["no_answer"], text_W, number)
        is_answer_B = has_span_B & (null_B <= self._task.null_threshold)
        return {
            "answer": tf.where(is_answer_B, span_B, ""),
            "start": tf.where(is_answer_B, start_B, -1),
            "end": tf.where(is_answer_B, end_B, -1),
            "best_span": span_B,
            "score": score_B,
            "null_score": null_B,
        }


def _most_context(first_B, text_W, start_W, length_W):
    """Returns whether each token of a window has maximum context there; see `most_context`.

    Returns:
      bool [sum of window lengths].
    """
    window, place = ranges(length_W)
    size = tf.gather(length_W, window)
    token = tf.gather(tf.gather(first_B, text_W) + start_W, window) + place
    context = tf.cast(tf.minimum(place, size - 1 - place), tf.float64)
    score = context + _LENGTH_BONUS * tf.cast(size, tf.float64)
    number = tf.reduce_max(tf.concat([[-1], token], axis=0)) + 1
    is_best = score == tf.gather(tf.math.unsorted_segment_max(score, token, number), token)
    candidate = tf.where(is_best, window, tf.int32.max)
    winner = tf.math.unsorted_segment_min(candidate, token, number)
    return window == tf.gather(winner, token)
