"""Generates text: continues prompts or fills in blanks.

A text with blanks, written ____ (four or more underscores), is filled in; other texts are
continued. ____{3} is a blank of exactly 3 word pieces. Prints one JSON object per text, with `text`
and `output`.
"""

from __future__ import annotations

from typing import Any

from absl import flags

from official.xlnet.data.text_files import read_texts, write_json_lines
from official.xlnet.files.staging import on_local_disk
from official.xlnet.tokenization.blanks import has_blank
from official.xlnet.tokenization.unknown_text import check_unknown

FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_string("model", None, "Model directory.", required=True, flag_values=FLAGS)
_TEXT = flags.DEFINE_multi_string("text", [], "Input text; may be repeated.", flag_values=FLAGS)
_INPUT = flags.DEFINE_string(
    "input", None, "File with one text per line, or JSON lines.", flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Output file (JSON lines); default: standard output.", flag_values=FLAGS
)
_NUM_TOKENS = flags.DEFINE_integer(
    "num_tokens",
    64,
    "Maximum number of generated word pieces.",
    lower_bound=0,
    upper_bound=1_000_000,
    flag_values=FLAGS,
)
_MAX_BLANK_LENGTH = flags.DEFINE_integer(
    "max_blank_length",
    1,
    "Maximum length of a blank without a given length, in word pieces.",
    lower_bound=1,
    upper_bound=1000,
    flag_values=FLAGS,
)
_TEMPERATURE = flags.DEFINE_float(
    "temperature",
    1.0,
    "Sampling temperature; 0 is greedy decoding.",
    lower_bound=0,
    upper_bound=1e6,
    flag_values=FLAGS,
)
_TOP_K = flags.DEFINE_integer(
    "top_k",
    0,
    "Sample from the k most probable pieces; 0: all.",
    lower_bound=0,
    upper_bound=2**31 - 1,
    flag_values=FLAGS,
)
_TOP_P = flags.DEFINE_float(
    "top_p",
    1.0,
    "Nucleus sampling: cumulative probability of the candidates.",
    lower_bound=0,
    upper_bound=1,
    flag_values=FLAGS,
)
_SEED = flags.DEFINE_integer(
    "seed", 0, "Random seed of sampling.", lower_bound=0, upper_bound=2**32 - 1, flag_values=FLAGS
)


@on_local_disk(FLAGS, reads=["model", "input"], writes=["output"])
def run() -> dict[str, Any]:
    """Generates text; returns the number of texts `continued` and `filled`."""
    from official.xlnet.api.language_model import fill_blanks, generate
    from official.xlnet.checkpoints.any_format import load_tokenizer
    from official.xlnet.inference.language_model import load_language_model
    from official.xlnet.inference.sampling import Sampling

    texts = read_texts(_TEXT.value, _INPUT.value)
    sampling = Sampling(_TEMPERATURE.value, _TOP_K.value, _TOP_P.value, _SEED.value)
    model, tokenizer = load_language_model(_MODEL.value), load_tokenizer(_MODEL.value)
    prompts = [text for text in texts if not has_blank(text)]
    blanks = [text for text in texts if has_blank(text)]
    # First, as it may be refused.
    filled = iter(fill_blanks(model, blanks, _MAX_BLANK_LENGTH.value, sampling, tokenizer))
    continued = iter(generate(model, prompts, _NUM_TOKENS.value, sampling, tokenizer))
    outputs = [next(filled if has_blank(text) else continued) for text in texts]
    lines = [{"text": text, "output": output} for text, output in zip(texts, outputs, strict=True)]
    write_json_lines(_OUTPUT.value, lines)
    counts = {"continued": len(prompts), "filled": len(blanks)}
    return {**counts, **check_unknown(tokenizer.counts, "texts")}
