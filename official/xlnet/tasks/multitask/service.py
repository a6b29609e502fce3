"""Multi-task service."""

from __future__ import annotations

import functools

from official.xlnet.configs.registry import SERVICES
from official.xlnet.data.graph_names import graph_names
from official.xlnet.inference.network.length_buckets import Tensors
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

    def __init__(self, model, tokenizer, settings):
        super().__init__(model, tokenizer, settings)
        subtasks = self._task.subtasks
        self._texts = settings.texts_of_subtasks or (settings.text_columns,) * len(subtasks)
        self._names = graph_names(subtasks, "task", _SIGNATURES)

    @property
    def texts_of_signatures(self):
        return super().texts_of_signatures | dict(zip(self._names, self._texts, strict=True))

    def signatures(self):
        alone = {
            name: self._function(functools.partial(self._serve_one, number))
            for number, name in enumerate(self._names)
        }
        return super().signatures() | {
            name: function.get_concrete_function(**self.text_specs(self.texts_of_signatures[name]))
            for name, function in alone.items()
        }

    def from_texts(self, texts):
        outputs: Tensors = {}
        reads = [(names, self._is_ranking(number)) for number, names in enumerate(self._texts)]
        for read in dict.fromkeys(reads):  # Texts that tasks share are read once.
            numbers = [number for number, its in enumerate(reads) if its == read]
            outputs |= self._answers_of(numbers, self._outputs(numbers[0], texts))
        return outputs

    def _serve_one(self, number, **texts):
        texts = self.checked(texts)
        return self._answer_of(number, self._outputs(number, texts))

    def _outputs(self, number, texts):
        """Outputs of the network for the texts of a task."""
        columns = [self.tokenizer(texts[name]) for name in self._texts[number]]
        if self._is_ranking(number):
            document, query = columns
            columns = [document, query[:, : self._task.query_length]]
        return self._network(self._packed(columns))

    def _is_ranking(self, number):
        return self._task.subtasks[number] in self._task.rankings

    def _answer(self, inputs):
        return self._answers_of(range(len(self._names)), self._network(inputs))

    def _answers_of(self, numbers, logits):
        return {
            f"{self._names[number]}_{output}": x
            for number in numbers
            for output, x in self._answer_of(number, logits).items()
        }

    def _answer_of(self, number, logits):
        name = self._task.subtasks[number]
        own = self._task.part(name)
        return SERVICES[own.name].answer(logits[name], own.labels)
