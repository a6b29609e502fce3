"""Continues texts, or fills the blanks in them.

A text with a blank, written ____ (four underscores or more), is filled in; one without is
continued. ____{3} is a blank of exactly 3 word pieces. Prints one JSON object for every text:
`text` and `output`.
"""

from __future__ import annotations

from typing import Any

from absl import flags

from official.xlnet.data.text_files import read_texts, write_json_lines
from official.xlnet.inference.generation import fill_blanks, generate
from official.xlnet.inference.language_model import load_language_model
from official.xlnet.inference.sampling import Sampling
from official.xlnet.tokenization.blanks import has_blank
from official.xlnet.tokenization.tokenizer import load_tokenizer

FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_string("model", None, "Model directory.", required=True, flag_values=FLAGS)
_TEXT = flags.DEFINE_multi_string("text", [], "A text; may be repeated.", flag_values=FLAGS)
_INPUT = flags.DEFINE_string("input", None, "File with one text a line.", flag_values=FLAGS)
_OUTPUT = flags.DEFINE_string(
    "output", None, "File for the texts; standard output by default.", flag_values=FLAGS
)
_NUM_TOKENS = flags.DEFINE_integer(
    "num_tokens", 64, "The most word pieces that are added to a text.", flag_values=FLAGS
)
_MAX_BLANK_LENGTH = flags.DEFINE_integer(
    "max_blank_length", 1, "The most word pieces in a blank without a length.", flag_values=FLAGS
)
_TEMPERATURE = flags.DEFINE_float(
    "temperature", 1.0, "Logits are divided by it; 0 is greedy.", flag_values=FLAGS
)
_TOP_K = flags.DEFINE_integer(
    "top_k", 0, "Draw among the k most probable pieces; 0: all.", flag_values=FLAGS
)
_TOP_P = flags.DEFINE_float(
    "top_p", 1.0, "Draw among the pieces that make up this probability.", flag_values=FLAGS
)
_SEED = flags.DEFINE_integer("seed", 0, "Seed of the draws.", flag_values=FLAGS)


def run() -> dict[str, Any]:
    """Returns the number of texts that were `continued` and `filled`."""
    texts = read_texts(_TEXT.value, _INPUT.value)
    sampling = Sampling(_TEMPERATURE.value, _TOP_K.value, _TOP_P.value, _SEED.value)
    model, tokenizer = load_language_model(_MODEL.value), load_tokenizer(_MODEL.value)
    prompts = [text for text in texts if not has_blank(text)]
    continued = iter(generate(model, tokenizer, prompts, _NUM_TOKENS.value, sampling))
    outputs = [
        fill_blanks(model, tokenizer, text, _MAX_BLANK_LENGTH.value, sampling)
        if has_blank(text)
        else next(continued)
        for text in texts
    ]
    lines = [{"text": text, "output": output} for text, output in zip(texts, outputs, strict=True)]
    write_json_lines(_OUTPUT.value, lines)
    return {"continued": len(prompts), "filled": len(texts) - len(prompts)}
