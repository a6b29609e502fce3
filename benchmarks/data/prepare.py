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
import pathlib
import sys
import tempfile
import time

import sentencepiece

from benchmarks.data.repeated_text import write_repeated
from benchmarks.harness.command_line import flag, parse, required
from official.xlnet.api.prepare import prepare
from official.xlnet.api.vocab import train_vocabulary
from official.xlnet.tokenization.special_tokens import VOCAB_FILE

_BARE_SECONDS = 4.0  # Duration of a measurement of SentencePiece alone.


def bare_rate(vocab_file: str, lines: list[str]) -> float:
    """Returns the tokens per second of SentencePiece alone on one core."""
    processor = sentencepiece.SentencePieceProcessor(model_file=vocab_file)
    tokens, start = 0, time.perf_counter()
    while (seconds := time.perf_counter() - start) < _BARE_SECONDS:
        tokens += sum(map(len, processor.encode(lines, num_threads=1)))
    return tokens / seconds


def main() -> None:
    flags = parse(
        __doc__,
        text=required("plain text to repeat"),
        megabytes=flag(200, "size of the corpus"),
        config=flag("configs/base.yaml", "configuration of the records"),
        size=flag(8000, "size of the vocabulary, which is trained on the text"),
    )
    # Imported here, so that workers, which import this module too, do not import TensorFlow.
    from official.xlnet.configs.experiment import XLNetConfig

    config = XLNetConfig.load(flags.config)
    with tempfile.TemporaryDirectory() as directory:
        vocab, corpus = f"{directory}/vocab", f"{directory}/corpus.txt"
        vocab_file = f"{vocab}/{VOCAB_FILE}"
        train_vocabulary([flags.text], vocab, flags.size)
        lines = pathlib.Path(flags.text).read_text(encoding="utf-8").split("\n")
        write_repeated(flags.text, corpus, flags.megabytes * 1_000_000)
        bare, rates = [bare_rate(vocab_file, lines)], []
        for workers in (1, 2):
            start, output = time.perf_counter(), f"{directory}/data-{workers}"
            counts = prepare([corpus], vocab, config, output, num_workers=workers)
            rates.append(counts["tokens"] / (time.perf_counter() - start))
            bare.append(bare_rate(vocab_file, lines))
            print(f"{workers} worker(s): {rates[-1]:,.0f} tokens/s", file=sys.stderr)
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            both = sum(pool.starmap(bare_rate, [(vocab_file, lines)] * 2, chunksize=1))
        results = {
            "corpus_bytes": os.path.getsize(corpus),
            "tokens": counts["tokens"],
            "sentencepiece": round(sum(bare) / len(bare)),
            "one_worker": round(rates[0]),
            "two_workers": round(rates[1]),
            "share_of_sentencepiece": round(2 * rates[0] / (bare[0] + bare[1]), 3),
            "scaling": round(rates[1] / rates[0], 3),
            "sentencepiece_scaling": round(both / bare[-1], 3),
        }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
