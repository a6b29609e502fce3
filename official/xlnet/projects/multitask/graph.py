"""Head of multi-task models: one head for each data set."""

from __future__ import annotations

import functools

import tensorflow as tf

from official.xlnet.configs.registry import HEADS
from official.xlnet.configs.sections import HeadSections
from official.xlnet.data.graph_names import graph_names
from official.xlnet.modeling.heads.base import Head, register_head
from official.xlnet.modeling.ops.initializers import build_layers
from official.xlnet.projects.multitask.settings import MultitaskConfig

_TOKEN_INPUTS = ("token_ids", "segment_ids", "is_padding")  # Inputs [U, S, T] of the heads.


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
        if self.rankings:  # Other data sets have one example in each sequence.
            separate_content = _with_one_sequence(content_USTD)
            separate_inputs = {name: _with_one_sequence(inputs[name]) for name in _TOKEN_INPUTS}
        else:
            separate_content, separate_inputs = content_USTD, inputs
        outputs = {}
        for name, head in zip(self.names, self.heads, strict=True):
            if self._is_ranking(name):
                head_outputs = head(content_USTD, inputs, seed)
            else:
                head_outputs = head(separate_content, separate_inputs, seed)
            (outputs[name],) = head_outputs.values()
        return outputs

    def loss(self, outputs, labels):
        def loss_of_head(name, head):
            head_outputs = {"logits": outputs[name], "score": outputs[name]}
            if self._is_ranking(name) or not self.rankings:
                return head.loss(head_outputs, labels)
            label_X = tf.reshape(labels["label"], [-1])
            loss_X = head.loss(head_outputs, {"label": label_X})
            loss_US = tf.reshape(loss_X, [-1, _num_sequences(labels)])
            return tf.reduce_sum(loss_US * _is_example(labels), axis=1)

        return self._with_head_of_batch(loss_of_head, labels)

    def num_items(self, labels):
        def num_items_of_head(name, head):
            if not self.rankings:
                return head.num_items(labels)
            if self._is_ranking(name):  # The loss compares candidates.
                return tf.ones_like(labels["weight"]) * float(_num_sequences(labels) > 1)
            return tf.reduce_sum(_is_example(labels), axis=1)

        return self._with_head_of_batch(num_items_of_head, labels)

    def _with_head_of_batch(self, function, labels):
        """Calls a function with the name and the head of the batch's data set."""
        branches = []
        for name, head in zip(self.names, self.heads, strict=True):
            branches.append(functools.partial(function, name, head))
        return tf.switch_case(labels["subtask"][0], branches)

    def _is_ranking(self, name: str) -> bool:
        return name in self.rankings


@register_head("multitask")
def multitask_head(config: HeadSections, **kwargs) -> MultiTaskHead:
    """Creates the multi-task head: for each data set, the head of a task of its own."""
    task = config.task.settings(MultitaskConfig)
    layer_names = graph_names(task.subtasks, "task")
    heads: dict[str, Head] = {}
    for name, layer_name in zip(task.subtasks, layer_names, strict=True):
        sections = HeadSections(config.model, task.part(name))
        create_head = HEADS[sections.task.name]
        heads[name] = create_head(sections, name=layer_name, dtype=kwargs.get("dtype"))
    return MultiTaskHead(config, heads, **kwargs)


def _with_one_sequence(x: tf.Tensor) -> tf.Tensor:
    """[U, S, …] → [U·S, 1, …]."""
    return tf.reshape(x, [-1, 1, *x.shape[2:]])


def _num_sequences(labels) -> int:
    """Number of sequences of a unit, S."""
    return labels["token_ids"].shape[1]


def _is_example(labels) -> tf.Tensor:
    """1 for each sequence that is not all padding, else 0; float32 [U, S]."""
    return tf.cast(~tf.reduce_all(labels["is_padding"], axis=2), tf.float32)
