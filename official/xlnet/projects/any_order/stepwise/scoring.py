"""The exact log-likelihood of what decoding in steps draws (DUEL, https://arxiv.org/abs/2603.01367).

If the positions of each step depend on nothing but the tokens of the steps before, a text has one
sequence of sets of positions S_1, S_2, …, S_N in which it is drawn, and

    log p(x) = Σ_n Σ_(t in S_n) log p(x_t | x_j with j in S_1, …, S_(n-1))

The decoder is run over the text: what it draws is replaced by the tokens of the text. Summed over
all texts of one length, p is 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from official.xlnet.configs.choices import SCORED_SELECTIONS
from official.xlnet.configs.validation import require, require_one_of
from official.xlnet.inference.decoding.sampling import Sampling
from official.xlnet.inference.language_model import (
    bucket,
    require_both_sides,
    require_language_model,
    require_one_window,
    require_windows,
)
from official.xlnet.inference.score import Score
from official.xlnet.inference.text_parts import Span, TextParts, text_parts
from official.xlnet.modeling.models.language_model import LanguageModel
from official.xlnet.projects.any_order.stepwise import Steps, decode_in_steps
from official.xlnet.tokenization.tokenizer import Tokenizer

_TOKENS_PER_BATCH = 1024  # Rows times their length: bounds the memory of the logits.


class StepScorer:
    """A pre-trained model that is ready to score texts as they are generated in steps.

    Args:
      model: a pre-trained model of all orders or of `<mask>`.
      tokenizer: its tokenizer.
      steps: how many passes, and which positions are filled in each; `select` is one of
        `SCORED_SELECTIONS`, without `remask`. Sampling is of all tokens, at temperature 1.

    Attributes:
      tokenizer: the tokenizer.
      num_windows: number of texts that have been scored, to show progress.

    Raises:
      ConfigError: the positions depend on more than the tokens of earlier steps, or the model does
        not predict tokens from both sides.

    Example:
      >>> StepScorer(model, tokenizer, Steps(2, "entropy")).score(["The cat sat."])[0].total
      -24.1
    """

    def __init__(self, model: LanguageModel, tokenizer: Tokenizer, steps: Steps):
        require_language_model(model.config, takes_masked=True)
        require_both_sides(model.config, "score in steps")
        require_one_of("select", steps.select, SCORED_SELECTIONS)
        require(not steps.remask, "remask", "false, for a likelihood", steps.remask)
        self.tokenizer = tokenizer
        self.num_windows = 0
        self._model = model
        self._steps = steps

    def score(
        self, texts: Sequence[str], targets: Sequence[Sequence[Span]] | None = None
    ) -> list[Score]:
        """Returns the log-likelihood of every text, or of its targets, given the rest of the text.

        Args:
          texts: the texts. What one scores does not depend on the others.
          targets: for each text, the spans (start, end) in characters that are scored; the rest is
            given. Default: all of it.

        Raises:
          DataError: a text is longer than a window, or a span is not in its text.
        """
        parts = []
        for row, text in enumerate(texts):
            part = text_parts(self.tokenizer, text, targets=targets[row] if targets else None)
            require_one_window(self._model.config, text, len(part.ids), "steps")
            parts.append(part)
        log_likelihoods = [np.zeros(0)] * len(parts)
        waiting = [row for row, part in enumerate(parts) if len(part.targets)]
        waiting.sort(key=lambda row: -len(parts[row].ids))
        while waiting:
            size = _batch_size(len(parts[waiting[0]].ids), len(waiting))
            batch, waiting = waiting[:size], waiting[size:]
            padded = batch + (size - len(batch)) * batch[-1:]
            scored = self._scored([parts[row] for row in padded])
            for row, of_targets in zip(batch, scored[: len(batch)], strict=True):
                log_likelihoods[row] = of_targets
            self.num_windows += len(batch)
        return [self._score_of(*pair) for pair in zip(parts, log_likelihoods, strict=True)]

    def _scored(self, parts: Sequence[TextParts]) -> list[np.ndarray]:
        """Log-likelihoods of the targets of a batch of texts."""
        decoded = decode_in_steps(
            self._model,
            token_ids=[part.ids.tolist() for part in parts],
            targets=[part.targets.tolist() for part in parts],
            # Neither is used, as nothing is drawn.
            is_allowed=[np.ones([len(part.targets), 1], bool) for part in parts],
            random=[],
            sampling=Sampling(),
            steps=self._steps,
            tokens=[part.ids[part.targets].tolist() for part in parts],
        )
        return [scores.astype(float) for _, scores in decoded]

    def _score_of(self, part: TextParts, log_likelihoods: np.ndarray) -> Score:
        pieces = [self.tokenizer.id_to_piece(token_id) for token_id in part.ids[part.targets]]
        offsets = [part.offsets[position] for position in part.targets]
        return Score(part.text, pieces, log_likelihoods, offsets)

    def require_one_window(
        self, texts: Sequence[str], purpose: str, places: Sequence[str] = ()
    ) -> None:
        """Raises `DataError` if a text is longer than a window.

        Args:
          texts: the texts.
          purpose: of one window, for the error.
          places: where each text is from, for the error.
        """
        require_windows(self._model.config, self.tokenizer, texts, purpose, places)


def _batch_size(length: int, num_rows: int) -> int:
    """The static number of rows of a batch, so that few graphs compile; some may be padding.

    Args:
      length: number of tokens of the longest text.
      num_rows: number of texts that are left.
    """
    few = bucket(num_rows) if num_rows > 1 else 1  # Single lines of a pipe are not padded.
    return min(max(1, _TOKENS_PER_BATCH // bucket(1 + length)), few)
