"""Service of multiple choice."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.serving.services.base import TaskService, register_service
from official.xlnet.serving.services.input_checks import check
from official.xlnet.tasks.multiple_choice import INPUTS, ChoiceConfig
from official.xlnet.tasks.multiple_choice.task import with_choices
from official.xlnet.tokenization.graph.packing import only, pack


@register_service("multiple_choice")
class ChoiceService(TaskService):
    """Multiple choice.

        passage | SEP | question with the choice in its blank `_`, or appended | SEP | CLS

    `question` may be empty, as for SWAG. Empty choices are ignored. For the arguments see
    `TaskService`.

    Outputs:
      choice: index of the best choice, int32 [B].
      probabilities: float32 [B, `task.num_choices`], 0 for choices that are not there.
    """

    num_texts = 2
    with_list = "choices"
    text_names = INPUTS

    def __init__(self, model, tokenizer, settings):
        super().__init__(model, tokenizer, settings)
        self.sequences = self._task.settings(ChoiceConfig).num_choices

    def from_texts(self, texts):
        most = self.sequences
        choices_BS = texts["choices"]
        num_choices = tf.shape(choices_BS)[1]
        got = tf.strings.as_string(num_choices)
        message = [f"choices: expected 2 to {most} in a row, got ", got]
        choices_BS = check((num_choices >= 2) & (num_choices <= most), message, choices_BS)
        choices_BS = tf.pad(choices_BS, [[0, 0], [0, most - num_choices]], constant_values="")
        choices_BS.set_shape([None, most])
        # A sequence for each of the X = B·S choices.
        question_BS = tf.tile(texts["question"][:, None], [1, most])
        filled_X = tf.reshape(with_choices(question_BS, choices_BS), [-1])
        passage = self.tokenizer(texts["passage"])
        row_X = tf.repeat(tf.range(passage.nrows(out_type=tf.int32)), most)
        columns = [tf.gather(passage, row_X), self.tokenizer(filled_X)]
        features = pack(columns, self.settings.max_length, self._task.truncation_side)
        has_text_X = tf.reshape(choices_BS != "", [-1])
        return self._answer(self.units(only(features, has_text_X)))

    def _answer(self, inputs):
        logits_BS = self._network(inputs)["logits"]
        return {
            "choice": tf.argmax(logits_BS, axis=1, output_type=tf.int32),
            "probabilities": tf.nn.softmax(logits_BS),
        }
