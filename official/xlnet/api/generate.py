"""`generate`: continues the texts of a file, or fills in their blanks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from official.xlnet.api.arguments import Model
from official.xlnet.api.verbs import USE, register_verb
from official.xlnet.files.arguments import OutputFile, Path
from official.xlnet.files.public import public
from official.xlnet.files.schema import Range
from official.xlnet.runtime.progress import loading_tensorflow


@register_verb(
    "generate", group=USE, counts={"continued": "texts continued", "filled": "blanks filled"}
)
@public()
def generate_file(
    model: Model,
    text: Sequence[str] = (),
    input: Path | None = None,
    output: OutputFile | None = None,
    num_tokens: Annotated[int, Range(1, 1_000_000)] = 64,
    max_blank_length: Annotated[int, Range(1, 1000)] = 1,
    temperature: Annotated[float, Range(0, 1e6)] = 1.0,
    top_k: Annotated[int, Range(0)] = 0,
    top_p: Annotated[float, Range(0, 1)] = 1.0,
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0,
) -> dict[str, Any]:
    """Generates text: continues prompts or fills in blanks.

    A text with blanks, written ____ (four or more underscores), is filled in; other texts are
    continued. ____{3} is a blank of exactly 3 word pieces. Prints one JSON object per text, with
    `text` and `output`. Running the same command again resumes one that was killed.

    Args:
      model: model directory.
      text: input text; may be repeated.
      input: file with one text per line, or a table with a column `text`; - for standard input.
      output: output file (JSON lines); default: standard output; - for standard output without
        results at the end.
      num_tokens: maximum number of generated word pieces.
      max_blank_length: maximum length of a blank without a given length, in word pieces.
      temperature: sampling temperature; 0 is greedy decoding.
      top_k: sample from the k most probable pieces; 0: all.
      top_p: nucleus sampling: cumulative probability of the candidates.
      seed: random seed of sampling.

    Returns:
      The number of texts `continued` and `filled`; counts of tokens.

    Example:
      $ xlnet generate --model=runs/model --text='The ____ of the people.'
    """
    with loading_tensorflow():
        from official.xlnet.jobs.file_generation import GenerationCall, generate_texts
    call = GenerationCall(
        model=model,
        text=text,
        input=input,
        output=output,
        num_tokens=num_tokens,
        max_blank_length=max_blank_length,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
    )
    return generate_texts(call)
