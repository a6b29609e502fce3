"""Service of multi-task models: the outputs of all tasks, and a signature for each."""

from __future__ import annotations

import collections
import functools

import tensorflow as tf

from official.xlnet.configs.registry import SERVICES
from official.xlnet.data.graph_names import graph_names
from official.xlnet.inference.network.length_buckets import Tensors
from official.xlnet.projects.multitask.settings import MultitaskConfig
from official.xlnet.serving.services.base import register_service
from official.xlnet.serving.services.text import TextService

_SIGNATURES = ("serving_default", "token_ids", "examples")


@register_service("multitask")
class MultiTaskService(TextService):
    """Multi-task service.

    Each task reads its own texts. `serving_default` takes the texts of all tasks and returns the
    outputs of each, as `<task>_<output>`. The signature `<task>` takes the texts of one task and
    returns its outputs, as the service of that task alone.
    """

    _task: MultitaskConfig

    def __init__(self, model, tokenizer, settings):
        super().__init__(model, tokenizer, settings)
        subtasks = self._task.subtasks
        # Text inputs of each task, and the name of its signature.
        self._texts = settings.texts_of_subtasks or (settings.text_columns,) * len(subtasks)
        self._names = graph_names(subtasks, "task", _SIGNATURES)

    @property
    def texts_of_signatures(self):
        return super().texts_of_signatures | dict(zip(self._names, self._texts, strict=True))

    def signatures(self):
        signatures = super().signatures()
        for index, name in enumerate(self._names):
            serve = tf.function(functools.partial(self._serve_one, index), autograph=False)
            specs = self.text_specs(self.texts_of_signatures[name])
            signatures[name] = serve.get_concrete_function(**specs)
        return signatures

    def from_texts(self, texts):
        tasks_by_inputs = collections.defaultdict(list)  # Tasks with the same inputs share them.
        for index, names in enumerate(self._texts):
            tasks_by_inputs[names, self._is_ranking(index)].append(index)
        outputs: Tensors = {}
        for indices in tasks_by_inputs.values():
            outputs |= self._answers_of(indices, self._outputs(indices[0], texts))
        return outputs

    def _serve_one(self, index, **texts):
        texts = self.checked(texts)
        return self._answer_of(index, self._outputs(index, texts))

    def _outputs(self, index, texts):
        """Outputs of the network for the texts of a task."""
        columns = [self.tokenizer(texts[name]) for name in self._texts[index]]
        if self._is_ranking(index):
            document, query = columns
            columns = [document, query[:, : self._task.query_length]]
        return self._network(self._packed(columns))

    def _is_ranking(self, index):
        return self._task.subtasks[index] in self._task.rankings

    def _answer(self, inputs):
        return self._answers_of(range(len(self._names)), self._network(inputs))

    def _answers_of(self, indices, logits):
        """Outputs of several tasks, each with the name of the task in front."""
        answers = {}
        for index in indices:
            for output, value in self._answer_of(index, logits).items():
                answers[f"{self._names[index]}_{output}"] = value
        return answers

    def _answer_of(self, index, logits):
        name = self._task.subtasks[index]
        settings = self._task.part(name)
        return SERVICES[settings.name].answer(logits[name], settings.labels)
