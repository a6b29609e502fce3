"""Benchmark of generation: time per token with and without the key-value cache.

    python -m benchmarks.inference.generation --config=configs/base.yaml --tokens=1024

Continues an 8-token prompt with a randomly initialized model, with batch size 1, and records the
time of each token. For comparison, times a forward pass over the same number of tokens, which is
the cost of a token without a cache. Writes all times to --output, for the picture of
docs/scoring_and_generation.md. The last line is JSON:

    milliseconds_per_token      with the cache, median over all tokens
    last_over_first             ratio of the medians of the last and the first tenth of the tokens
    uncached_milliseconds       {number of tokens: time without a cache}
"""

from __future__ import annotations

import json
import time
from unittest import mock

import numpy as np
from absl import app, flags

from official.xlnet.cli import set_environment_defaults

FLAGS = flags.FLAGS
flags.DEFINE_string("config", "configs/base.yaml", "Configuration of the model.")
flags.DEFINE_integer("tokens", 1024, "Number of tokens to generate.", lower_bound=20)
flags.DEFINE_string("output", "docs/generation_cost.json", "JSON file to write.")

_FIRST_ID = 100  # An ordinary token.
_PROMPT = list(range(_FIRST_ID, _FIRST_ID + 8))
_UNCACHED_REPEATS = 3


def main(argv: list[str]) -> None:
    del argv
    set_environment_defaults()
    from official.xlnet.configs.experiment import XLNetConfig
    from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer

    overrides = [
        f"training.{key}=1" for key in ("batch_size", "accumulate_steps", "parallel_slices")
    ]
    overrides.append("training.precision=float32")
    model = XLNetPretrainer(XLNetConfig.load(FLAGS.config, overrides))
    cached = time_cached(model, FLAGS.tokens)
    lengths = [length for length in (16, 64, 128, 256, 512, 768, 1024) if length <= FLAGS.tokens]
    uncached = {length: time_uncached(model, length) for length in lengths}
    tenth = len(cached) // 10
    uncached_milliseconds = {length: 1e3 * uncached[length] for length in lengths}
    results = {
        "milliseconds_per_token": 1e3 * float(np.median(cached)),
        "last_over_first": float(np.median(cached[-tenth:]) / np.median(cached[:tenth])),
        "uncached_milliseconds": uncached_milliseconds,
    }
    with open(FLAGS.output, "w", encoding="utf-8") as file:
        cached_milliseconds = np.round(1e3 * cached, 2).tolist()
        json.dump({"cached": cached_milliseconds, "uncached": uncached_milliseconds}, file)
    print(json.dumps(results))


def time_cached(model, num_tokens: int) -> np.ndarray:
    """Returns the seconds from each generated token to the next, float64 [num_tokens - 1]."""
    import tensorflow as tf

    from official.xlnet.inference import cached_decoding
    from official.xlnet.inference.generation import generate
    from official.xlnet.tokenization.special_tokens import EOD_ID

    class TokenizerOfNumbers:
        vocab_size = model.config.model.vocab_size

        def encode(self, text):
            return [int(word) for word in text.split()]

        def decode(self, ids):
            return " ".join(map(str, ids))

        def id_to_piece(self, i):
            return str(i)

    times: list[float] = []
    step = cached_decoding.step

    def timed_step(*arguments):
        logits, caches = step(*arguments)
        with tf.control_dependencies([logits]):
            noted = tf.py_function(lambda: times.append(time.perf_counter()), [], [])
        with tf.control_dependencies([noted]):
            return tf.identity(logits), caches

    # Makes the end-of-document token improbable, so that generation does not stop early.
    model.lm_head.bias.assign(-100.0 * tf.one_hot(EOD_ID, model.config.model.vocab_size))
    prompt = " ".join(map(str, _PROMPT))
    with mock.patch.object(cached_decoding, "step", timed_step):
        generate(model, [prompt], num_tokens, tokenizer=TokenizerOfNumbers())
    return np.diff(times)  # The first step runs after tracing.


def time_uncached(model, length: int) -> float:
    """Returns the seconds of a forward pass over `length` tokens with one target."""
    import tensorflow as tf

    predict = tf.function(lambda inputs: model(inputs)["logits"])
    order_1T = np.zeros([1, length], np.int32)
    order_1T[0, -1] = 1
    inputs = {
        "token_ids": tf.constant(np.arange(_FIRST_ID, _FIRST_ID + length)[None], tf.int32),
        "order": tf.constant(order_1T),
        "target_positions": tf.constant([[length - 1]]),
    }
    predict(inputs)
    seconds = []
    for _ in range(_UNCACHED_REPEATS):
        start = time.perf_counter()
        predict(inputs).numpy()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


if __name__ == "__main__":
    app.run(main)
