"""Questions about TensorFlow graphs."""

import tensorflow as tf


def above(op: tf.Operation) -> list[tf.Operation]:
    """Operations that an operation waits for, step by step, itself included."""
    seen, todo = [], [op]
    while todo:
        op = todo.pop()
        if op not in seen:
            seen.append(op)
            todo += [*op.control_inputs, *(x.op for x in op.inputs)]
    return seen
