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
        number = tf.shape(choices_BS)[1]
        message = [f"choices: expected 2 to {most} in a row, got ", tf.strings.as_string(number)]
        choices_BS = check((number >= 2) & (number <= most), message, choices_BS)
        choices_BS = tf.pad(choices_BS, [[0, 0], [0, most - number]], constant_values="")
        choices_BS.set_shape([None, most])
        question_BS = tf.tile(texts["question"][:, None], [1, most])
        passage = self.tokenizer(texts["passage"])
        row = tf.repeat(tf.range(passage.nrows(out_type=tf.int32)), most)
        second = self.tokenizer(tf.reshape(with_choices(question_BS, choices_BS), [-1]))
        length, side = self.settings.max_length, self._task.truncation_side
        features = pack([tf.gather(passage, row), second], length, side)
        return self._answer(self.units(only(features, tf.reshape(choices_BS != "", [-1]))))

    def _answer(self, inputs):
        logits_BS = self._network(inputs)["logits"]
        return {
            "choice": tf.argmax(logits_BS, axis=1, output_type=tf.int32),
            "probabilities": tf.nn.softmax(logits_BS),
        }
