"""Custom gradients live as long as their graph, no longer, and are otherwise as in TensorFlow."""

import gc
import re
import weakref

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import ops

from tests.helpers.documents import ROOT


def test_private_modules_are_imported_in_one_file_which_is_known_to_fit_this_version():
    assert tf.__version__.startswith("2.20."), "try tensorflow_internals.py with this version"
    private = re.compile(
        r"^\s*(from|import) (tensorflow\.(python|compiler|core)|tf_keras\.src)", re.M
    )
    files = [*ROOT.glob("official/xlnet/**/*.py"), *ROOT.glob("data_prep/**/*.py")]
    (found,) = (path for path in files if private.search(path.read_text(encoding="utf-8")))
    assert found.name == "tensorflow_internals.py"


class Scaled(tf.Module):
    """x ↦ x · kernel, with gradients multiplied by 7 and by 3, in graphs inside of graphs."""

    def __init__(self):
        super().__init__()
        self.kernel = tf.Variable([[2.0, 3.0], [5.0, 7.0]])

    def _times(self, x):
        @tf.custom_gradient
        def times(x):
            def gradient(upstream, variables=()):
                return 7.0 * upstream, [3.0 * upstream for _ in variables]

            return x * self.kernel, gradient

        return times(x)

    @tf.function
    def once(self, x):
        return self._times(x)

    @tf.function
    def twice(self, x):
        def step(number, x):
            return number + 1, tf.cond(x[0, 0] > 0, lambda: self._times(x), lambda: x)

        return tf.while_loop(lambda number, _: number < 2, step, (0, x))[1]

    @tf.function
    def call(self, x):
        return self.once(x)


def gradient_of(function):
    x = tf.constant([[11.0, 13.0], [17.0, 19.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(function(x))
    return tape.gradient(loss, x)


FACTORS = {"once": 7, "twice": 49, "call": 7}


def test_entries_and_graphs_end_with_the_model():
    gc.collect()
    before = set(ops.gradient_registry.list())
    model = Scaled()
    functions = [getattr(model, name) for name in FACTORS]
    for function, factor in zip(functions, FACTORS.values(), strict=True):
        for run in (function, tf.function(lambda x, f=function: f(x))):
            np.testing.assert_array_equal(gradient_of(run), np.full([2, 2], factor))
    step = tf.function(lambda f=model.twice: gradient_of(f))
    np.testing.assert_array_equal(step(), np.full([2, 2], 49))
    assert set(ops.gradient_registry.list()) - before
    watched = [weakref.ref(x) for x in (model, model.kernel, step.get_concrete_function().graph)]
    del model, functions, function, run, step
    gc.collect()
    assert [reference() for reference in watched] == [None] * 3
    assert set(ops.gradient_registry.list()) == before
