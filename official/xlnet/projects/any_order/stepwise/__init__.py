"""Decoding in steps: each pass of the network predicts all unknown tokens, and keeps several.

A pass takes as long as any other, so that N steps cost N passes, whatever the number of tokens.
What is known has order 0 and attends to both sides, what is not known has order 1.

Which positions are kept may depend on the distributions of the unknown tokens, but not on the
tokens that are drawn from them (`confidence`, `margin`, `entropy`, `random`). Then the tokens of
one step are independent given those of the steps before, and what is drawn has a likelihood, a
product over steps (`scoring`): the more steps, the fewer tokens are taken for independent. At
one token a step, each is drawn given all that are known. With `drawn`, the rule of MaskGIT (Chang
et al. 2022, there with noise) and LLaDA (Nie et al. 2025), a position is kept because of the token
that was drawn there: probable tokens are drawn more often than the model says, with any number of
steps. The same is true of `remask`. Masked diffusion (Sahoo et al. 2024) keeps random positions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from official.xlnet.configs.choices import STEP_SELECTIONS
from official.xlnet.configs.registry import DECODERS
from official.xlnet.configs.validation import AT_LEAST_1, require_number, require_one_of
from official.xlnet.errors import ConfigError
from official.xlnet.inference.decoding.cached import graph_of
from official.xlnet.inference.decoding.sampling import Sampling, choose
from official.xlnet.inference.decoding.target_rows import TargetRow
from official.xlnet.inference.language_model import bucket, require_both_sides
from official.xlnet.inference.network.inference_encoder import finite
from official.xlnet.modeling.models.language_model import LanguageModel
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.projects.any_order.orders import largest_log_probability, negative_entropy
from official.xlnet.tokenization.special_tokens import MASK_ID, PAD_ID

# How certain the model is of a position, from the log-likelihoods of all tokens there [..., V].
CERTAINTY: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "confidence": lambda log_p: largest_log_probability(log_p).numpy(),
    "margin": lambda log_p: np.diff(np.exp(np.partition(log_p, -2)[..., -2:]))[..., 0],
    "entropy": lambda log_p: negative_entropy(log_p).numpy(),
}


@dataclasses.dataclass(frozen=True)
class Steps:
    """How tokens are decoded in steps.

    Attributes:
      number: passes of the network. About the same number of tokens is kept in each.
      select: the positions that are kept first: `confidence`, those whose most probable token has
        the highest probability; `margin`, the largest distance to the second most probable token;
        `entropy`, whose distribution has the lowest entropy; `random`; or `drawn`, those whose
        drawn token has the highest probability.
      remask: whether a token of an earlier step, with the certainty that it had there, can become
        unknown again where later ones are more certain.
    """

    number: int
    select: str = "confidence"
    remask: bool = False
    takes_masked = True

    def __post_init__(self):
        require_number("steps", self.number, AT_LEAST_1)
        require_one_of("select", self.select, STEP_SELECTIONS)

    def decode(
        self,
        model: LanguageModel,
        rows: Sequence[TargetRow],
        is_allowed_GV: np.ndarray,
        sampling: Sampling,
    ) -> list[tuple[list[int], np.ndarray]]:
        """See `Decoder`."""
        require_both_sides(model.config, "generate in steps")
        return decode_in_steps(
            model,
            token_ids=[row.token_ids for row in rows],
            targets=[row.targets for row in rows],
            is_allowed=[is_allowed_GV[row.groups] for row in rows],
            random=[row.random for row in rows],
            sampling=sampling,
            steps=self,
        )


@DECODERS.register("steps")
def decoder_of_steps(steps: int | None, select: str, remask: bool) -> Steps:
    """Returns the decoder of several tokens in each step; see `Steps`.

    Raises:
      ConfigError: there is no number of steps, or a value is out of range.
    """
    if steps is None:
        raise ConfigError("steps: expected their number, for select and remask, got None")
    return Steps(steps, select, remask)


def decode_in_steps(
    model: LanguageModel,
    token_ids: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    is_allowed: Sequence[np.ndarray],
    random: Sequence[np.random.Generator],
    sampling: Sampling,
    steps: Steps,
    tokens: Sequence[Sequence[int]] | None = None,
) -> list[tuple[list[int], np.ndarray]]:
    """Predicts the targets of some rows.

    Args:
      model: a model of all orders (`permutation`) or of `<mask>` (`predicts_masked`).
      token_ids: ids of each row, anything at its targets.
      targets: positions of the tokens to predict.
      is_allowed: bool [P, V] for each row, what each of its P targets may become.
      random: the draws of each row.
      sampling: how tokens are chosen from their distribution.
      steps: how many in each step, and which.
      tokens: the targets of each row, which are taken for drawn, whatever their probability; by
        default, tokens are drawn.

    Returns:
      For each row the ids of its targets and their log-likelihoods, float32 [P], each given the
      tokens that were known in its step.
    """
    is_masked = model.config.objective.predicts_masked
    places = "content_positions" if is_masked else "target_positions"
    longest = max(map(len, token_ids))
    most = _num_slots(max(map(len, targets)), is_scoring=tokens is not None)
    # One column more, at least, which unused targets point to.
    last = bucket(1 + max(longest, 1 + max(max(row) for row in targets))) - 1
    ids_BT = keras.utils.pad_sequences(token_ids, last + 1, padding="post", value=PAD_ID)
    target_BP = keras.utils.pad_sequences(targets, most, padding="post", value=last)
    is_padding_BT = np.arange(last + 1) >= [
        [max(len(i), t[-1] + 1)] for i, t in zip(token_ids, targets, strict=True)
    ]
    is_unused_BP = target_BP == last
    allowed_BPV = np.stack([np.pad(x, [(0, most - len(x)), (0, 0)], "edge") for x in is_allowed])
    wanted_B1 = np.sum(~is_unused_BP, axis=1)[:, None]

    def uniform() -> np.ndarray:  # Of which no row's depend on the other rows.
        draws = [generator.random(len(row)) for generator, row in zip(random, targets, strict=True)]
        return keras.utils.pad_sequences(draws, most, padding="post", dtype="float32")

    # How certain a known token was; -inf where it is unknown.
    certainty_BP = np.where(is_unused_BP, np.inf, -np.inf)
    token_BP, score_BP = np.full(target_BP.shape, MASK_ID), np.zeros(target_BP.shape, np.float32)
    for step in range(1, steps.number + 1):
        is_known_BP = certainty_BP > -np.inf
        np.put_along_axis(ids_BT, target_BP, token_BP, axis=1)
        inputs = {"token_ids": ids_BT, "is_padding": is_padding_BT, places: target_BP}
        inputs["segment_ids"] = np.zeros_like(ids_BT)  # Of one text, whatever its tokens.
        if not is_masked:
            inputs["order"] = np.zeros_like(ids_BT)
            np.put_along_axis(inputs["order"], target_BP, ~is_known_BP, axis=1)
        tensors = {name: tf.constant(x) for name, x in inputs.items()}
        log_p_BPV = finite(graph_of(model, _log_probabilities)(tensors).numpy())
        if tokens is None:
            drawn_BP = _drawn(np.where(allowed_BPV, log_p_BPV, -np.inf), uniform(), sampling)
        else:
            drawn_BP = keras.utils.pad_sequences(tokens, most, padding="post")
        drawn_score_BP = np.take_along_axis(log_p_BPV, drawn_BP[..., None], axis=2)[..., 0]
        if steps.select == "random":
            drawn_certainty_BP = uniform()
        elif steps.select == "drawn":
            drawn_certainty_BP = drawn_score_BP
        else:
            # Rounded: of equal ones, the first from the left.
            drawn_certainty_BP = CERTAINTY[steps.select](log_p_BPV).round(4)
        known_certainty_BP = certainty_BP if steps.remask else np.inf
        certainty_BP = np.where(is_known_BP, known_certainty_BP, drawn_certainty_BP)
        token_BP = np.where(is_known_BP, token_BP, drawn_BP)
        score_BP = np.where(is_known_BP, score_BP, drawn_score_BP)
        num_kept_B1 = most - wanted_B1 + -(-wanted_B1 * step // steps.number)
        is_dropped_BP = np.argsort(np.argsort(-certainty_BP, 1, "stable"), 1) >= num_kept_B1
        certainty_BP = np.where(is_dropped_BP, -np.inf, certainty_BP)
        token_BP = np.where(is_dropped_BP, MASK_ID, token_BP)
    return [
        (token_P[~is_unused_P].tolist(), score_P[~is_unused_P])
        for token_P, score_P, is_unused_P in zip(token_BP, score_BP, is_unused_BP, strict=True)
    ]


def _num_slots(num_targets: int, is_scoring: bool) -> int:
    """The static number P that targets are padded to, as each is a graph of its own.

    Texts that are scored have any number of targets. Those that are generated have few, and often
    as many, and the fewer slots are unused, the faster a pass is.
    """
    if is_scoring and num_targets > 8:
        return bucket(num_targets)
    return 4 * -(-num_targets // 4)


def _log_probabilities(model, inputs):
    """Log-likelihoods of all tokens at the targets, float32 [B, P, V]."""
    return tf.nn.log_softmax(model(inputs)["logits"])


def _drawn(log_p_BPV: np.ndarray, uniform_BP: np.ndarray, sampling: Sampling) -> np.ndarray:
    """A token for each target, drawn independently, int32 [B, P]."""
    if sampling.temperature == 0:
        return log_p_BPV.argmax(axis=2).astype(np.int32)
    drawn_X = choose(
        tf.constant(log_p_BPV.reshape([-1, log_p_BPV.shape[2]])),
        tf.constant(uniform_BP.ravel()),
        tf.constant(sampling.temperature, tf.float32),
        tf.constant(sampling.top_k, tf.int32),
        tf.constant(sampling.top_p, tf.float32),
    )
    return drawn_X.numpy().reshape(uniform_BP.shape)
