"""Multi-task head: one head for each data set."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.registry import HEADS
from official.xlnet.configs.sections import HeadSections
from official.xlnet.data.graph_names import graph_names
from official.xlnet.modeling.heads.base import Head, register_head

_OF_TOKENS = ("token_ids", "segment_ids", "is_padding")  # Inputs [U, S, T] that heads read.


class MultiTaskHead(Head):
    """Several heads on one encoder, one for each data set.

    All units of a batch are of the same data set, whose index is `labels["subtask"]`. The loss is
    that of its head.

    With rankings among the data sets, a unit of a training batch has `task.num_candidates`
    sequences: the documents of a query, or as many examples of a data set of another kind, which
    have `label` [U, S]. Where examples are missing, all is padding.

    Args:
      config: sections of the experiment.
      heads: the heads by subtask name, in the order of `task.subtasks`. The names are those of
        the outputs too.
    """

    def __init__(self, config: HeadSections, heads: dict[str, Head], **kwargs):
        super().__init__(config, **kwargs)
        self.names = tuple(heads)
        self.heads = list(heads.values())
        self.reads_summary = all(head.reads_summary for head in self.heads)

    def build(self, input_shape):
        for head in self.heads:
            with tf.name_scope(head.name):
                head.build(input_shape)
        super().build(input_shape)

    def call(self, content_USTD, inputs, seed=None):
        together = content_USTD, inputs
        apart = together
        if self.config.task.rankings:
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
            if self._is_ranking(name) or not self.config.task.rankings:
                return lambda: head.loss(output, labels)

            def sum_of_examples():
                label_X = tf.reshape(labels["label"], [-1])
                loss_US = tf.reshape(head.loss(output, {"label": label_X}), [-1, _number(labels)])
                return tf.reduce_sum(loss_US * _is_example(labels), axis=1)

            return sum_of_examples

        return self._of_subtask(of, labels)

    def num_items(self, labels):
        def of(name, head):
            if not self.config.task.rankings:
                return lambda: head.num_items(labels)
            if self._is_ranking(name):  # The loss compares candidates.
                return lambda: tf.ones_like(labels["weight"]) * float(_number(labels) > 1)
            return lambda: tf.reduce_sum(_is_example(labels), axis=1)

        return self._of_subtask(of, labels)

    def _of_subtask(self, of, labels):
        """Calls the function of the data set that the batch is of."""
        branches = [of(name, head) for name, head in zip(self.names, self.heads, strict=True)]
        return tf.switch_case(labels["subtask"][0], branches)

    def _is_ranking(self, name: str) -> bool:
        return name in self.config.task.rankings


@register_head("multitask")
def multitask_head(config: HeadSections, **kwargs) -> MultiTaskHead:
    """Creates the multi-task head: for each data set, the head of a task of its own."""
    subtasks = config.task.subtasks
    heads: dict[str, Head] = {}
    for name, scope in zip(subtasks, graph_names(subtasks, "task"), strict=True):
        own = HeadSections(config.model, config.task.part(name))
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
