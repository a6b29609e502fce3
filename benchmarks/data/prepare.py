"""Benchmark of data preparation throughput, compared with SentencePiece alone in the same run.

    python -m benchmarks.data.prepare --text=FILE [--megabytes=200] [--width=80]

Repeats a text to the given size and prepares it with one worker and with two. Before and after each
run, times SentencePiece alone on the same lines. The last line is a JSON object:

    tokens                  number of input tokens
    sentencepiece           tokens per second of SentencePiece alone on one core (mean)
    one_worker, two_workers tokens per second from raw text to records, including startup
    share_of_sentencepiece  tokens per CPU-second of one worker / of SentencePiece before and after
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
import textwrap
import time

import sentencepiece

from benchmarks.data.repeated_text import write_repeated
from benchmarks.harness.command_line import flag, parse, required
from official.xlnet.api.prepare import prepare
from official.xlnet.api.vocab import train_vocabulary
from official.xlnet.tokenization.special_tokens import VOCAB_FILE

_BARE_SECONDS = 4.0  # Duration of a measurement of SentencePiece alone.


def bare_rates(vocab_file: str, lines: list[str]) -> tuple[float, float]:
    """Returns the tokens per second, and per CPU-second, of SentencePiece alone on one core."""
    processor = sentencepiece.SentencePieceProcessor(model_file=vocab_file)
    tokens, start, cpu_start = 0, time.perf_counter(), time.process_time()
    while (seconds := time.perf_counter() - start) < _BARE_SECONDS:
        tokens += sum(map(len, processor.encode(lines, num_threads=1)))
    return tokens / seconds, tokens / (time.process_time() - cpu_start)


def wrapped(text: str, width: int) -> str:
    """Returns a text whose lines are broken to lines of at most so many characters."""
    return "\n".join("\n".join(textwrap.wrap(line, width)) for line in text.split("\n"))


def main() -> None:
    flags = parse(
        __doc__,
        text=required("plain text to repeat"),
        megabytes=flag(200, "size of the corpus"),
        width=flag(0, "characters to wrap lines to; 0: lines as they are"),
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
        text = pathlib.Path(flags.text).read_text(encoding="utf-8")
        text = wrapped(text, flags.width) if flags.width else text
        pathlib.Path(f"{directory}/text.txt").write_text(text, encoding="utf-8")
        write_repeated(f"{directory}/text.txt", corpus, flags.megabytes * 1_000_000)
        lines = text.split("\n")
        bare, rates, cpu_rates = [bare_rates(vocab_file, lines)], [], []
        for workers in (1, 2):
            start, cpu_start = time.perf_counter(), time.process_time()
            output = f"{directory}/data-{workers}"
            counts = prepare([corpus], vocab, config, output, num_workers=workers)
            rates.append(counts["tokens"] / (time.perf_counter() - start))
            cpu_rates.append(counts["tokens"] / (time.process_time() - cpu_start))
            bare.append(bare_rates(vocab_file, lines))
            print(f"{workers} worker(s): {rates[-1]:,.0f} tokens/s", file=sys.stderr)
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            pair = pool.starmap(bare_rates, [(vocab_file, lines)] * 2, chunksize=1)
        alone, alone_cpu = zip(*bare, strict=True)
        results = {
            "corpus_bytes": os.path.getsize(corpus),
            "tokens": counts["tokens"],
            "sentencepiece": round(sum(alone) / len(alone)),
            "one_worker": round(rates[0]),
            "two_workers": round(rates[1]),
            "share_of_sentencepiece": round(2 * cpu_rates[0] / (alone_cpu[0] + alone_cpu[1]), 3),
            "scaling": round(rates[1] / rates[0], 3),
            "sentencepiece_scaling": round(sum(rate for rate, _ in pair) / alone[-1], 3),
        }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
