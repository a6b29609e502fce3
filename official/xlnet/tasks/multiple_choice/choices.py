"""Questions with a choice in their blank."""

from __future__ import annotations

import tensorflow as tf


def with_choices(question: tf.Tensor, choice: tf.Tensor) -> tf.Tensor:
    """Puts a choice into the first blank `_` of each question, or appends it.

    Args:
      question: string [...].
      choice: string [...].

    Returns:
      string [...].

    Example:
      >>> with_choices(tf.constant(["He is _ .", "Who?"]), tf.constant(["old", "I"])).numpy()
      array([b'He is old .', b'Who? I'], dtype=object)
    """
    has_blank = tf.strings.regex_full_match(question, "(?s).*_.*")
    before = tf.strings.regex_replace(question, "(?s)_.*", "")
    after = tf.strings.regex_replace(question, "(?s)^[^_]*_", "")
    return tf.where(
        has_blank,
        tf.strings.join([before, choice, after]),
        tf.strings.join([question, choice], separator=" "),
    )
