"""Head and service of multi-task models: one head for each data set."""

from __future__ import annotations

import functools

import tensorflow as tf

from official.xlnet.configs.registry import HEADS, SERVICES
from official.xlnet.configs.sections import HeadSections
from official.xlnet.data.graph_names import graph_names
from official.xlnet.inference.network.length_buckets import Tensors
from official.xlnet.modeling.heads.base import Head, register_head
from official.xlnet.modeling.ops.initializers import build_layers
from official.xlnet.serving.services.base import register_service
from official.xlnet.serving.services.text import TextService
from official.xlnet.tasks.multitask import MultitaskConfig

_SIGNATURES = ("serving_default", "token_ids", "examples")
_OF_TOKENS = ("token_ids", "segment_ids", "is_padding")  # Inputs [U, S, T] that heads read.


class MultiTaskHead(Head):
    """Several heads on one encoder, one for each data set.

    All units of a batch come from the same data set, whose index is `labels["subtask"]`. Its head
    computes the loss.

    With rankings among the data sets, a unit of a training batch has `task.num_candidates`
    sequences: the documents of a query, or as many examples of a data set of another kind, which
    have `label` [U, S]. Where examples are missing, all is padding.

    Args:
      config: sections of the experiment.
      heads: the heads by subtask name, in the order of `task.subtasks`. The names are also
        the names of the outputs.
    """

    def __init__(self, config: HeadSections, heads: dict[str, Head], **kwargs):
        super().__init__(config, **kwargs)
        self.names = tuple(heads)
        self.heads = list(heads.values())
        self.rankings = config.task.settings(MultitaskConfig).rankings
        self.reads_summary = all(head.reads_summary for head in self.heads)

    def build(self, input_shape):
        build_layers(*self.heads, input_shape=input_shape)
        super().build(input_shape)

    def call(self, content_USTD, inputs, seed=None):
        apart = together = content_USTD, inputs
        if self.rankings:
            tokens = {name: _with_one_sequence(inputs[name]) for name in _OF_TOKENS}
            apart = _with_one_sequence(content_USTD), tokens
        outputs = {}
        for name, head in zip(self.names, self.heads, strict=True):
            read = together if self._is_ranking(name) else apart
            (outputs[name],) = head(*read, seed).values()
        return outputs

    def loss(self, outputs, labels):
        def of(name, head):
            output = dict.fromkeys(("logits", "score"), outputs[name])
            if self._is_ranking(name) or not self.rankings:
                return head.loss(output, labels)
            label_X = tf.reshape(labels["label"], [-1])
            loss_US = tf.reshape(head.loss(output, {"label": label_X}), [-1, _number(labels)])
            return tf.reduce_sum(loss_US * _is_example(labels), axis=1)

        return self._of_subtask(of, labels)

    def num_items(self, labels):
        def of(name, head):
            if not self.rankings:
                return head.num_items(labels)
            if self._is_ranking(name):  # The loss compares candidates.
                return tf.ones_like(labels["weight"]) * float(_number(labels) > 1)
            return tf.reduce_sum(_is_example(labels), axis=1)

        return self._of_subtask(of, labels)

    def _of_subtask(self, of, labels):
        """Calls a function with the name and the head of the batch's data set."""
        heads = zip(self.names, self.heads, strict=True)
        branches = [functools.partial(of, name, head) for name, head in heads]
        return tf.switch_case(labels["subtask"][0], branches)

    def _is_ranking(self, name: str) -> bool:
        return name in self.rankings


@register_head("multitask")
def multitask_head(config: HeadSections, **kwargs) -> MultiTaskHead:
    """Creates the multi-task head: for each data set, the head of a task of its own."""
    task = config.task.settings(MultitaskConfig)
    subtasks = task.subtasks
    heads: dict[str, Head] = {}
    for name, scope in zip(subtasks, graph_names(subtasks, "task"), strict=True):
        own = HeadSections(config.model, task.part(name))
        heads[name] = HEADS[own.task.name](own, name=scope, dtype=kwargs.get("dtype"))
    return MultiTaskHead(config, heads, **kwargs)


def _with_one_sequence(x: tf.Tensor) -> tf.Tensor:
    """[U, S, …] → [U·S, 1, …]."""
    return tf.reshape(x, [-1, 1, *x.shape[2:]])


def _number(labels) -> int:
    """Number of sequences of a unit, S."""
    return labels["token_ids"].shape[1]


def _is_example(labels) -> tf.Tensor:
    """1 for each sequence that is not all padding, else 0; float32 [U, S]."""
    return tf.cast(~tf.reduce_all(labels["is_padding"], axis=2), tf.float32)


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
        self._texts = settings.texts_of_subtasks or (settings.text_columns,) * len(subtasks)
        self._names = graph_names(subtasks, "task", _SIGNATURES)

    @property
    def texts_of_signatures(self):
        return super().texts_of_signatures | dict(zip(self._names, self._texts, strict=True))

    def signatures(self):
        alone = {
            name: tf.function(functools.partial(self._serve_one, number), autograph=False)
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
