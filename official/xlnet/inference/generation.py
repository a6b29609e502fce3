"""Generation: continuing a text, and filling the blanks in one.

Both predict tokens one after the other from the context and the tokens predicted before, with a
cache (`decoding`). Filling a blank is the same as continuing a text, except for where the targets
are: the context stands on both sides.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, TypeVar

import numpy as np

from official.xlnet.configs.registry import DECODERS
from official.xlnet.files.arguments import AnyPath
from official.xlnet.files.public import public
from official.xlnet.files.schema import Range
from official.xlnet.inference.decoding.sampling import Sampling
from official.xlnet.inference.decoding.target_rows import (
    TEXT_OR_END,
    Decoder,
    OneByOne,
    TargetRow,
    allowed_pieces,
    blank_row,
    check_length,
)
from official.xlnet.inference.language_model import (
    for_each,
    is_causal,
    loaded,
    require_both_sides,
)
from official.xlnet.modeling.models.language_model import LanguageModel
from official.xlnet.tokenization.blanks import BlankText, has_blank, parse_blanks
from official.xlnet.tokenization.special_tokens import EOD_ID, WORD_START
from official.xlnet.tokenization.tokenizer import Tokenizer

Texts = TypeVar("Texts", str, list[str])
BATCH_SIZE = 8
_DRAWN, _GREEDY = Sampling(), Sampling(temperature=0.0)


@public()
def generate(
    model: AnyPath | LanguageModel,
    prompts: Texts,
    num_tokens: Annotated[int, Range(1)] = 64,
    sampling: Sampling = _DRAWN,
    tokenizer: Tokenizer | None = None,
    max_blank_length: Annotated[int, Range(1)] = 1,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    steps: int | None = None,
    select: str = "confidence",
    remask: bool = False,
) -> Texts:
    """Continues texts, and fills their blanks if they have any, as `xlnet generate` does.

    A text with blanks, written `____`, is filled as `fill_blanks` does, and is not continued.
    Others are continued until the end of the document, or for `num_tokens` tokens.

    Args:
      model: pre-trained model: a model directory, HF folder or TF1 release, or a loaded model.
      prompts: a text or a list of texts, which are context: every token of one sees all of it, as
        in pre-training; with a causal model, `<eod>` and the tokens before it. An empty one is
        continued from nothing.
      num_tokens: maximum number of tokens to add.
      sampling: how tokens are chosen, e.g. `Sampling(temperature=0)` for greedy search.
      tokenizer: the tokenizer of a loaded model.
      max_blank_length: maximum number of word pieces in a blank without a length.
      temperature: as in `Sampling`, in place of the value in `sampling`.
      top_k: the same.
      top_p: the same.
      seed: the same.
      steps: number of passes of the network, each of which adds several tokens; see
        docs/any_order.md. By default one by one, which a model of `<mask>` cannot.
      select: which positions a step fills first, see docs/any_order.md.
      remask: whether tokens of earlier steps can become unknown again, see docs/any_order.md.

    Returns:
      Each text with its continuation, or with its blanks filled; for a text that is not in a list,
      a single one.

    Raises:
      ConfigError: an argument is out of range, a loaded model comes without its tokenizer, or the
        objective that the model was trained with does not predict this.
      DataError: the model cannot be loaded.
      TypeError: a text is not a string.

    Example:
      >>> generate("runs/base", "The cat", num_tokens=3, temperature=0)
      'The cat sat on the'
    """
    sampling = _changed(sampling, temperature, top_k, top_p, seed)
    decoder = decoder_of(steps, select, remask)

    def outputs(texts: list[str]) -> list[str]:
        language_model = loaded(model, tokenizer, decoder.takes_masked)
        writer = TextWriter(*language_model, sampling, decoder, num_tokens, max_blank_length)
        return writer.outputs(texts)

    return for_each(prompts, outputs)


@public()
def fill_blanks(
    model: AnyPath | LanguageModel,
    texts: Texts,
    max_length: Annotated[int, Range(1)] = 1,
    sampling: Sampling = _GREEDY,
    tokenizer: Tokenizer | None = None,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    steps: int | None = None,
    select: str = "confidence",
    remask: bool = False,
) -> Texts:
    """Fills the blanks of texts, written `____`, or `____{3}` for a blank of three word pieces.

    Blanks are filled from left to right, given all the text around them. Where a blank says no
    length, all lengths up to `max_length` are tried, and the one whose pieces have the highest
    mean log-likelihood is kept; later blanks without a length count as one piece meanwhile.

    Args:
      model: pre-trained model: a model directory, HF folder or TF1 release, or a loaded model.
      texts: a text or a list of texts with blanks. An empty one stays empty.
      max_length: maximum number of word pieces in a blank without a length.
      sampling: how tokens are chosen; the most probable ones by default.
      tokenizer: the tokenizer of a loaded model.
      temperature: as in `Sampling`, in place of the value in `sampling`.
      top_k: the same.
      top_p: the same.
      seed: the same.
      steps: number of passes of the network, each of which adds several tokens; see
        docs/any_order.md. By default one by one, which a model of `<mask>` cannot.
      select: which positions a step fills first, see docs/any_order.md.
      remask: whether tokens of earlier steps can become unknown again, see docs/any_order.md.

    Returns:
      The filled texts; for a text that is not in a list, a single one.

    Raises:
      ConfigError: an argument is out of range, a loaded model comes without its tokenizer, or the
        objective that the model was trained with does not predict this.
      DataError: the model cannot be loaded, a text has no blank, or is longer with its blanks than
        what the model has been trained to see, `seq_len` and `mem_len` together.
      TypeError: a text is not a string.

    Example:
      >>> fill_blanks("runs/base", "The ____ sat on the ____{2}.")
      'The cat sat on the door mat.'
    """
    sampling = _changed(sampling, temperature, top_k, top_p, seed)
    decoder = decoder_of(steps, select, remask)

    def filled(texts: list[str]) -> list[str]:
        language_model = loaded(model, tokenizer, decoder.takes_masked)
        writer = TextWriter(*language_model, sampling, decoder, max_blank_length=max_length)
        outputs = []
        for place, text in enumerate(texts):
            outputs.append(writer.filled(text, place) if text.strip() else text)
        return outputs

    return for_each(texts, filled)


def decoder_of(steps: int | None, select: str, remask: bool) -> Decoder:
    """Returns the decoder of one target after the other, or of several in each step.

    Args:
      steps: see `generate`.
      select: see `generate`.
      remask: see `generate`.
    """
    if steps is None and select == "confidence" and not remask:
        return OneByOne()
    return DECODERS["steps"](steps, select, remask)


def _changed(
    sampling: Sampling,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    seed: int | None,
) -> Sampling:
    """Sampling with the values that are not None in place of its own."""
    values = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    changes = {name: value for name, value in values.items() if value is not None}
    return dataclasses.replace(sampling, **changes)  # type: ignore[arg-type]


@dataclasses.dataclass(frozen=True)
class TextWriter:
    """A model that continues texts and fills blanks, and how it does; see `generate`.

    Attributes:
      model: the model.
      tokenizer: its tokenizer.
      sampling: how tokens are chosen.
      decoder: which targets are decoded together.
      num_tokens: maximum number of tokens of a continuation.
      max_blank_length: maximum number of word pieces in a blank without a length.
    """

    model: LanguageModel
    tokenizer: Tokenizer
    sampling: Sampling
    decoder: Decoder
    num_tokens: int = 64
    max_blank_length: int = 1

    def outputs(self, texts: list[str], first: int = 0) -> list[str]:
        """Returns texts with their continuations, or with their blanks filled.

        Args:
          texts: the texts.
          first: number of texts before these; what is drawn depends on it.
        """
        # Blanks first, as they may be refused.
        outputs = {}
        prompts = {}
        for place, text in enumerate(texts, first):
            if has_blank(text):
                outputs[place] = self.filled(text, place)
            else:
                prompts[place] = text
        outputs |= self._continued(prompts)
        return [outputs[place] for place in range(first, first + len(texts))]

    def filled(self, text: str, place: int) -> str:
        """Returns a text with its blanks filled.

        Args:
          text: the text.
          place: its place in the list; what is drawn depends on it.
        """
        require_both_sides(self.model.config, "fill blanks")
        parsed = parse_blanks(self.tokenizer, text)
        lengths = [blank.length or 1 for blank in parsed.blanks]
        longest = [blank.length or self.max_blank_length for blank in parsed.blanks]
        check_length(self.model, parsed, longest)
        fillings = None
        for index, blank in enumerate(parsed.blanks):
            if blank.length is None and self.max_blank_length > 1:
                candidates = [
                    [*lengths[:index], length, *lengths[index + 1 :]]
                    for length in range(1, self.max_blank_length + 1)
                ]
                results = self._fillings(parsed, candidates, place)
                best = int(np.argmax([np.mean(scores[index]) for _, scores in results]))
                lengths, (fillings, _) = candidates[best], results[best]
        if fillings is None:
            [(fillings, _)] = self._fillings(parsed, [lengths], place)
        return parsed.fill([self.tokenizer.decode(ids.tolist()) for ids in fillings])

    def _continued(self, prompts: Mapping[int, str]) -> dict[int, str]:
        """Texts with their continuations, by their places in the list."""
        start = [EOD_ID] if is_causal(self.model.config) else []
        rows = []
        for place, prompt in prompts.items():
            ids = start + self.tokenizer.encode(prompt)
            targets = list(range(len(ids), len(ids) + self.num_tokens))
            random = np.random.default_rng([self.sampling.seed, place])
            rows.append(TargetRow(ids, targets, [TEXT_OR_END] * self.num_tokens, random))
        texts = {}
        for (place, prompt), (ids, _) in zip(prompts.items(), self._predicted(rows), strict=True):
            ids = ids[: ids.index(EOD_ID)] if EOD_ID in ids else ids
            begins_word = bool(ids) and self.tokenizer.id_to_piece(ids[0]).startswith(WORD_START)
            context = prompt if self.tokenizer.keep_whitespace else prompt.rstrip()
            texts[place] = context + " " * begins_word + self.tokenizer.decode(ids)
        return texts

    def _fillings(
        self, parsed: BlankText, candidates: list[list[int]], place: int
    ) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
        """For each choice of lengths: the ids in every blank and their log-likelihoods."""
        rows = []
        for lengths in candidates:
            random = np.random.default_rng([self.sampling.seed, place])
            rows.append(blank_row(parsed, lengths, random))
        results = []
        for lengths, (ids, scores) in zip(candidates, self._predicted(rows), strict=True):
            ends = np.cumsum(lengths)[:-1]
            results.append((np.split(ids, ends), np.split(scores, ends)))
        return results

    def _predicted(self, rows: list[TargetRow]) -> list[tuple[list[int], np.ndarray]]:
        """Ids and log-likelihoods of the targets of every row."""
        is_allowed_GV = allowed_pieces(self.tokenizer, self.model.config.model.vocab_size)
        results: list[tuple[list[int], np.ndarray]] = []
        for first in range(0, len(rows), BATCH_SIZE):
            batch = rows[first : first + BATCH_SIZE]
            results += self.decoder.decode(self.model, batch, is_allowed_GV, self.sampling)
        return results
