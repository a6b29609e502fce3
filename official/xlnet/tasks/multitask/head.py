"""Multi-task head: one head for each data set."""

from __future__ import annotations

import functools

import tensorflow as tf

from official.xlnet.configs.registry import ANSWER_MODULES, HEADS
from official.xlnet.configs.sections import HeadSections
from official.xlnet.data.graph_names import graph_names
from official.xlnet.modeling.heads.base import Head, register_head


class MultiTaskHead(Head):
    """Several heads on one encoder, one for each data set.

    All units of a batch are of the same data set, whose index is `labels["subtask"]`. The loss is
    that of its head.

    Args:
      config: sections of the experiment.
      heads: the heads by subtask name, in the order of `task.subtasks`. The names are those of
        the outputs too.
    """

    reads_summary = True

    def __init__(self, config: HeadSections, heads: dict[str, Head], **kwargs):
        super().__init__(config, **kwargs)
        self.names = tuple(heads)
        self.heads = list(heads.values())

    def build(self, input_shape):
        for head in self.heads:
            with tf.name_scope(head.name):
                head.build(input_shape)
        super().build(input_shape)

    def call(self, content_USTD, inputs, seed=None):
        return {
            name: head(content_USTD, inputs, seed)["logits"]
            for name, head in zip(self.names, self.heads, strict=True)
        }

    def loss(self, outputs, labels):
        def of(name, head):
            return lambda: head.loss({"logits": outputs[name]}, labels)

        branches = [of(name, head) for name, head in zip(self.names, self.heads, strict=True)]
        return tf.switch_case(labels["subtask"][0], branches)

    def num_items(self, labels):
        branches = [functools.partial(head.num_items, labels) for head in self.heads]
        return tf.switch_case(labels["subtask"][0], branches)


@register_head("multitask")
def multitask_head(config: HeadSections, **kwargs) -> MultiTaskHead:
    """Creates the multi-task head: a classification or regression head for each subtask.

    `task.labels` lists the classes of all subtasks as `subtask/class`. A subtask without classes
    is a regression.
    """
    heads: dict[str, Head] = {}
    dtype = kwargs.get("dtype")
    scopes = graph_names(config.task.subtasks, "task")
    for number, (subtask, scope) in enumerate(zip(config.task.subtasks, scopes, strict=True)):
        num_labels = sum(label.startswith(f"{subtask}/") for label in config.task.labels)
        if num_labels:
            summary_head = ANSWER_MODULES["summary"]
            heads[subtask] = summary_head(config, num_labels, name=scope, dtype=dtype)
        else:
            heads[subtask] = HEADS["regression"](config, number=number, name=scope, dtype=dtype)
    return MultiTaskHead(config, heads, **kwargs)
