"""What is packed into one sequence: a document and its query, or each of them alone."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.task import TaskConfig


def columns_of(
    query: tf.RaggedTensor, document: tf.RaggedTensor, row_N: tf.Tensor, task: TaskConfig
) -> list[tf.RaggedTensor]:
    """Returns the texts of each sequence, to `pack` them.

    Args:
      query: token ids of Q queries, ragged int32 [Q, (number of tokens)].
      document: token ids of N documents, ragged int32 [N, (number of tokens)].
      row_N: the query of each document.
      task: settings of the task.

    Returns:
      The texts of N sequences, document and query; with `task.scoring` `kernel`, that of Q + N
      sequences, first the queries.
    """
    query = query[:, : task.query_length]
    if task.scoring == "summary":
        return [document, tf.gather(query, row_N)]
    return [tf.concat([query, document], axis=0)]
