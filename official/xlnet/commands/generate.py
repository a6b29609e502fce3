"""`xlnet generate`: continues prompts or fills in blanks, from lines of a file to lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from data_prep.tasks.text_rows import read_text_rows
from official.xlnet.configs.choices import STEP_SELECTIONS
from official.xlnet.data.reading import check_unknown, log_counts
from official.xlnet.data.result_files import require_json_lines
from official.xlnet.data.text_files import write_json_lines
from official.xlnet.files.arguments import COMMAS, OutputFile, Path
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf, Range
from official.xlnet.tokenization.blanks import has_blank


@public()
def generate_file(
    model: Path,
    text: Sequence[str] = (),
    input: Path | None = None,
    output: OutputFile | None = None,
    num_tokens: Annotated[int, Range(0, 1_000_000)] = 64,
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
    each blank its possible fillers, with probabilities and ranks.

    Args:
      model: model directory.
      text: input text; may be repeated.
      input: file with one text per line, or a table with a column `text`.
      output: output file (JSON lines); default: standard output.
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
    from official.xlnet.inference.decoding.sampling import Sampling
    from official.xlnet.inference.generation import generate
    from official.xlnet.inference.language_model import GENERATED, SCORED, loaded

    require_json_lines(output)
    rows = read_text_rows(text, input)
    texts = [row["text"] for row in rows]
    if choices or candidates:
        return _candidates(model, rows, choices or candidates, max_blank_length, output)
    sampling = Sampling(temperature, top_k, top_p, seed)
    loaded_model, tokenizer = loaded(model, kinds=SCORED if steps else GENERATED)
    outputs = generate(
        *(loaded_model, texts, num_tokens, sampling, tokenizer, max_blank_length),
        steps=steps,
        select=select,
        remask=remask,
    )
    lines = [{**row, "output": generated} for row, generated in zip(rows, outputs, strict=True)]
    write_json_lines(output, lines)
    filled = sum(map(has_blank, texts))
    counts = {"continued": len(texts) - filled, "filled": filled}
    counts["empty"] = sum(not text.strip() for text in texts)
    log_counts(input or "text", {"texts": len(texts), **counts, **tokenizer.counts})
    return {**counts, **check_unknown(tokenizer.counts, "texts")}


def _candidates(
    model: str,
    rows: list[dict[str, Any]],
    wanted: int | Sequence[str],
    max_length: int,
    output: str | None,
) -> dict[str, Any]:
    """Writes the candidates for blanks; returns the number of `texts`."""
    from official.xlnet.inference.cloze import blank_candidates

    texts = [row["text"] for row in rows]
    candidates = blank_candidates(model, texts, wanted, max_length=max_length)
    lines = [
        {**row, "candidates": [[candidate._asdict() for candidate in blank] for blank in blanks]}
        for row, blanks in zip(rows, candidates, strict=True)
    ]
    return {"texts": write_json_lines(output, lines)}
