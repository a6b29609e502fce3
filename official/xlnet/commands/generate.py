"""Generates text: continues prompts or fills in blanks.

A text with blanks, written ____ (four or more underscores), is filled in; other texts are
continued. ____{3} is a blank of exactly 3 word pieces. Prints one JSON object per text, with `text`
and `output`. With --candidates or --choices, a text has, instead of the output, for each blank what
may stand there, with probabilities and ranks.

Example:
  xlnet generate --model=runs/model --text='The ____ of the people.'
"""

from __future__ import annotations

from typing import Any

from data_prep.tasks.text_rows import read_text_rows
from official.xlnet.commands import MODEL, TEXTS, comma_list, flag_table, integer, number, seed
from official.xlnet.data.reading import check_unknown, say_counts
from official.xlnet.data.text_files import write_json_lines
from official.xlnet.files.staging import on_local_disk
from official.xlnet.tokenization.blanks import has_blank

FLAGS = flag_table(
    MODEL,
    TEXTS,
    integer("num_tokens", 64, "Maximum number of generated word pieces.", most=1_000_000),
    integer(
        "max_blank_length",
        default=1,
        text="Maximum length of a blank without a given length, in word pieces.",
        least=1,
        most=1000,
    ),
    integer(
        "candidates", 0, "For each blank, this many of the most probable strings.", most=10_000
    ),
    comma_list("choices", [], "For the blank of each text, these strings by their probability."),
    number("temperature", 1.0, "Sampling temperature; 0 is greedy decoding.", 0, 1e6),
    integer("top_k", 0, "Sample from the k most probable pieces; 0: all."),
    number("top_p", 1.0, "Nucleus sampling: cumulative probability of the candidates.", 0, 1),
    seed("Random seed of sampling."),
)


@on_local_disk(FLAGS, reads=["model", "input"], writes=["output"])
def run() -> dict[str, Any]:
    """Generates text; returns the number of texts `continued` and `filled`."""
    from official.xlnet.inference.generation import generate
    from official.xlnet.inference.language_model import loaded
    from official.xlnet.inference.sampling import Sampling

    rows = read_text_rows(FLAGS.text, FLAGS.input)
    texts = [row["text"] for row in rows]
    if FLAGS.choices or FLAGS.candidates:
        return _candidates(rows)
    sampling = Sampling(FLAGS.temperature, FLAGS.top_k, FLAGS.top_p, FLAGS.seed)
    model, tokenizer = loaded(FLAGS.model)
    outputs = generate(model, texts, FLAGS.num_tokens, sampling, tokenizer, FLAGS.max_blank_length)
    lines = [{**row, "output": output} for row, output in zip(rows, outputs, strict=True)]
    write_json_lines(FLAGS.output, lines)
    filled = sum(map(has_blank, texts))
    counts = {"continued": len(texts) - filled, "filled": filled}
    counts["empty"] = sum(not text.strip() for text in texts)
    say_counts(FLAGS.input or "--text", {"texts": len(texts), **counts, **tokenizer.counts})
    return {**counts, **check_unknown(tokenizer.counts, "texts")}


def _candidates(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Writes the candidates for blanks; returns the number of `texts`."""
    from official.xlnet.inference.cloze import blank_candidates

    texts, wanted = [row["text"] for row in rows], FLAGS.choices or FLAGS.candidates
    found = blank_candidates(FLAGS.model, texts, wanted, max_length=FLAGS.max_blank_length)
    lines = [
        {**row, "candidates": [[each._asdict() for each in blank] for blank in blanks]}
        for row, blanks in zip(rows, found, strict=True)
    ]
    return {"texts": write_json_lines(FLAGS.output, lines)}
