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
import tensorflow as tf

from benchmarks.harness.command_line import flag, parse
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.files.json_files import write_json
from official.xlnet.inference.decoding import cached
from official.xlnet.inference.generation import generate
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.tokenization.special_tokens import EOD_ID

_LENGTHS = (16, 64, 128, 256, 512, 768, 1024)
_FIRST_ID = 100  # An ordinary token.
_PROMPT = range(_FIRST_ID, _FIRST_ID + 8)
_UNCACHED_REPEATS = 3


def main() -> None:
    flags = parse(
        __doc__,
        config=flag("configs/base.yaml", "configuration of the model"),
        tokens=flag(1024, "number of tokens to generate, at least 20"),
        output=flag("docs/generation_cost.json", "JSON file to write"),
    )
    steps = ("batch_size", "accumulate_steps", "parallel_slices")
    overrides = ["training.precision=float32", *(f"training.{key}=1" for key in steps)]
    model = XLNetPretrainer(XLNetConfig.load(flags.config, overrides))
    cached = 1e3 * time_cached(model, flags.tokens)
    uncached = {n: 1e3 * time_uncached(model, n) for n in _LENGTHS if n <= flags.tokens}
    tenth = len(cached) // 10
    times = {"cached": np.round(cached, 2).tolist(), "uncached": uncached}
    write_json(flags.output, times, indent=None)
    results = {
        "milliseconds_per_token": float(np.median(cached)),
        "last_over_first": float(np.median(cached[-tenth:]) / np.median(cached[:tenth])),
        "uncached_milliseconds": uncached,
    }
    print(json.dumps(results))


def time_cached(model, num_tokens: int) -> np.ndarray:
    """Returns the seconds from each generated token to the next, float64 [num_tokens - 1]."""
    tokenizer = mock.Mock(vocab_size=model.config.model.vocab_size)  # Of numbers.
    tokenizer.encode = lambda text: [int(word) for word in text.split()]
    tokenizer.decode = lambda ids: " ".join(map(str, ids))
    tokenizer.id_to_piece = str
    times: list[float] = []
    step = cached.step

    def timed_step(*arguments):
        logits, caches = step(*arguments)
        with tf.control_dependencies([logits]):
            noted = tf.py_function(lambda: times.append(time.perf_counter()), [], [])
        with tf.control_dependencies([noted]):
            return tf.identity(logits), caches

    # Makes the end-of-document token improbable, so that generation does not stop early.
    model.lm_head.bias.assign(-100.0 * tf.one_hot(EOD_ID, model.config.model.vocab_size))
    with mock.patch.object(cached, "step", timed_step):
        generate(model, [" ".join(map(str, _PROMPT))], num_tokens, tokenizer=tokenizer)
    return np.diff(times)  # The first step runs after tracing.


def time_uncached(model, length: int) -> float:
    """Returns the seconds of a forward pass over `length` tokens with one target."""
    predict = tf.function(lambda inputs: model(inputs)["logits"])
    inputs = {
        "token_ids": tf.range(_FIRST_ID, _FIRST_ID + length)[None],
        "order": tf.one_hot([length - 1], length, dtype=tf.int32),
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
    main()
