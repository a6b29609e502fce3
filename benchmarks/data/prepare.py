"""Benchmark of data preparation throughput, compared with SentencePiece alone in the same run.

    python -m benchmarks.data.prepare --text=FILE [--megabytes=200] [--config=configs/base.yaml]

Repeats a text to the given size and prepares it with one worker and with two. Before and after each
run, times SentencePiece alone on the same lines. The last line is a JSON object:

    tokens                  number of input tokens
    sentencepiece           tokens per second of SentencePiece alone on one core (mean)
    one_worker, two_workers tokens per second from raw text to records, including startup
    share_of_sentencepiece  one_worker / SentencePiece before and after that run
    scaling                 two_workers / one_worker
    sentencepiece_scaling   the same for SentencePiece alone in two concurrent processes, as the
                            limit of the machine
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Sequence

import sentencepiece
from absl import app, flags

from benchmarks.data.repeated_text import write_repeated
from data_prep.corpus.vocabulary import train_vocabulary
from data_prep.pipelines.prepare import prepare
from official.xlnet.tokenization.special_tokens import VOCAB_FILE

_TEXT = flags.DEFINE_string("text", None, "Plain text to repeat.", required=True)
_MEGABYTES = flags.DEFINE_integer("megabytes", 200, "Size of the corpus.")
_CONFIG = flags.DEFINE_string("config", "configs/base.yaml", "Configuration of the records.")
_VOCAB = flags.DEFINE_string(
    "vocab", None, "Directory of a vocabulary; default: trained on the text."
)
_SIZE = flags.DEFINE_integer("size", 8000, "Size of the trained vocabulary.")
_BARE_SECONDS = 4.0  # Duration of a measurement of SentencePiece alone.


def bare_rate(processor: sentencepiece.SentencePieceProcessor, lines: list[str]) -> float:
    """Returns the tokens per second of SentencePiece alone on one core."""
    tokens, start = 0, time.perf_counter()
    while (seconds := time.perf_counter() - start) < _BARE_SECONDS:
        tokens += sum(map(len, processor.encode(lines, num_threads=1)))
    return tokens / seconds


def bare_rate_of_two(vocab_file: str, lines: list[str]) -> float:
    """Returns the total tokens per second of SentencePiece alone in two concurrent processes."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        return sum(pool.starmap(_load_and_time, [(vocab_file, lines)] * 2, chunksize=1))


def _load_and_time(vocab_file: str, lines: list[str]) -> float:
    return bare_rate(sentencepiece.SentencePieceProcessor(model_file=vocab_file), lines)


def main(argv: Sequence[str]) -> None:
    del argv
    # Imported here, so that workers, which import this module too, do not import TensorFlow.
    from official.xlnet.configs.experiment import XLNetConfig

    config = XLNetConfig.load(_CONFIG.value)
    with tempfile.TemporaryDirectory() as directory:
        vocab = _VOCAB.value or f"{directory}/vocab"
        if not _VOCAB.value:
            train_vocabulary([_TEXT.value], vocab, _SIZE.value)
        processor = sentencepiece.SentencePieceProcessor(model_file=f"{vocab}/{VOCAB_FILE}")
        with open(_TEXT.value, encoding="utf-8") as file:
            lines = file.read().split("\n")
        corpus = f"{directory}/corpus.txt"
        write_repeated(_TEXT.value, corpus, _MEGABYTES.value * 1_000_000)

        bare = [bare_rate(processor, lines)]
        rates = {}
        for num_workers in (1, 2):
            start = time.perf_counter()
            output = f"{directory}/data-{num_workers}"
            counts = prepare([corpus], vocab, config, output, num_workers=num_workers)
            rates[num_workers] = counts["tokens"] / (time.perf_counter() - start)
            bare.append(bare_rate(processor, lines))
            print(f"{num_workers} worker(s): {rates[num_workers]:,.0f} tokens/s", file=sys.stderr)
        both = bare_rate_of_two(f"{vocab}/{VOCAB_FILE}", lines)
        print(
            json.dumps(
                {
                    "corpus_bytes": os.path.getsize(corpus),
                    "tokens": counts["tokens"],
                    "sentencepiece": round(sum(bare) / len(bare)),
                    "one_worker": round(rates[1]),
                    "two_workers": round(rates[2]),
                    "share_of_sentencepiece": round(2 * rates[1] / (bare[0] + bare[1]), 3),
                    "scaling": round(rates[2] / rates[1], 3),
                    "sentencepiece_scaling": round(both / bare[-1], 3),
                }
            )
        )


if __name__ == "__main__":
    app.run(main)
