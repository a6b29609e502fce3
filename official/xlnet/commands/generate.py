"""`xlnet generate`: continues prompts or fills in blanks, from lines of a file to lines."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any

from data_prep.tasks.text_rows import Row, text_chunks
from official.xlnet.configs.choices import STEP_SELECTIONS
from official.xlnet.data.lost_rows import check_unknown, log_counts
from official.xlnet.data.result_files import require_json_lines
from official.xlnet.data.text_files import Answers, write_json_lines
from official.xlnet.files.arguments import COMMAS, OutputFile, Path
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf, Range
from official.xlnet.jobs.identity import identity_of
from official.xlnet.tokenization.blanks import has_blank


@public()
def generate_file(
    model: Path,
    text: Sequence[str] = (),
    input: Path | None = None,
    output: OutputFile | None = None,
    num_tokens: Annotated[int, Range(1, 1_000_000)] = 64,
    max_blank_length: Annotated[int, Range(1, 1000)] = 1,
    candidates: Annotated[int, Range(0, 10_000)] = 0,
    choices: Annotated[Sequence[str], COMMAS] = (),
    temperature: Annotated[float, Range(0, 1e6)] = 1.0,
    top_k: Annotated[int, Range(0)] = 0,
    top_p: Annotated[float, Range(0, 1)] = 1.0,
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0,
    steps: Annotated[int, Range(1)] | None = None,
    select: Annotated[str, OneOf(STEP_SELECTIONS)] = "confidence",
    remask: bool = False,
) -> dict[str, Any]:
    """Generates text: continues prompts or fills in blanks.

    A text with blanks, written ____ (four or more underscores), is filled in; other texts are
    continued. ____{3} is a blank of exactly 3 word pieces. Prints one JSON object per text, with
    `text` and `output`. With candidates or choices, it has `candidates` in place of `output`: for
    each blank its possible fillers, with probabilities and ranks. Running the same command again
    resumes one that was killed.

    Args:
      model: model directory.
      text: input text; may be repeated.
      input: file with one text per line, or a table with a column `text`; - for standard input.
      output: output file (JSON lines); default: standard output; - for standard output without
        results at the end.
      num_tokens: maximum number of generated word pieces.
      max_blank_length: maximum length of a blank without a given length, in word pieces.
      candidates: number of the most probable strings to print for each blank.
      choices: rank these strings as fillers for the blank of each text, separated by commas.
      temperature: sampling temperature; 0 is greedy decoding.
      top_k: sample from the k most probable pieces; 0: all.
      top_p: nucleus sampling: cumulative probability of the candidates.
      seed: random seed of sampling.
      steps: number of passes of the network, each of which adds several tokens; default: one by
        one. Models of masked tokens (denoising, absorbing_diffusion) generate in steps only.
      select: which tokens a step adds first: those of the highest probability, of the largest
        margin to the second, of the lowest entropy, or random ones.
      remask: whether tokens of earlier steps that are less certain become unknown again.

    Returns:
      The number of texts `continued` and `filled`, or of `texts` with candidates; counts of tokens.

    Example:
      $ xlnet generate --model=runs/model --text='The ____ of the people.'
    """
    from official.xlnet.inference.cloze import ranker
    from official.xlnet.inference.decoding.sampling import Sampling
    from official.xlnet.inference.generation import BATCH_SIZE, TextWriter, decoder_of
    from official.xlnet.inference.language_model import loaded

    require_json_lines(output)
    chunks, total = text_chunks(text, input, BATCH_SIZE)
    wanted, sampling = choices or candidates, Sampling(temperature, top_k, top_p, seed)
    decoder = decoder_of(steps, select, remask)
    language_model = loaded(model, takes_masked=decoder.takes_masked or bool(wanted))
    writer = TextWriter(*language_model, sampling, decoder, num_tokens, max_blank_length)
    counts = language_model[1].counts
    rank = ranker(*language_model, wanted, max_blank_length) if wanted else None

    def answer(rows: list[Row]) -> list[dict[str, Any]]:
        texts = [row["text"] for row in rows]
        if rank:
            blanks = [[[x._asdict() for x in blank] for blank in rank(text)] for text in texts]
            return [{"candidates": found} for found in blanks]
        outputs = writer.outputs(texts, first=counts["continued"] + counts["filled"])
        filled = sum(map(has_blank, texts))
        counts.update(continued=len(texts) - filled, filled=filled)
        counts.update(empty=sum(not text.strip() for text in texts))
        return [{"output": output} for output in outputs]

    work = Answers(chunks, answer, counts, total, "texts" if total else "")
    settings = [text, wanted, num_tokens, max_blank_length, steps, select, remask]
    settings += dataclasses.astuple(sampling)
    identity = identity_of(output, input, [model], BATCH_SIZE, *settings)
    with work.to(output, identity) as answered:
        pairs = (pair for chunk in answered for pair in zip(*chunk, strict=True))
        write_json_lines(output, ({**row, **found} for row, found in pairs))
    resumed = {"resumed_rows": work.kept} if work.kept else {}
    if wanted:
        return {"texts": work.done, **resumed}
    log_counts(input or "text", {"texts": work.done, **counts})
    written = {name: counts[name] for name in ("continued", "filled", "empty")}
    return {**written, **resumed, **check_unknown(counts, "texts")}
