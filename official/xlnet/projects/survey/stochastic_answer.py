"""Stochastic answer network (SAN): classification of a pair of texts in several steps (MT-DNN)."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.registry import ANSWER_MODULES
from official.xlnet.configs.sections import HeadSections
from official.xlnet.modeling.heads.base import MASKED, Head, num_classes
from official.xlnet.modeling.kernels.stateless_dropout import dropout, fold_in, keep_mask
from official.xlnet.modeling.layers.losses import label_cross_entropy
from official.xlnet.modeling.ops.initializers import normal
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.projects.survey.settings import StochasticAnswerConfig
from official.xlnet.tokenization.special_tokens import NUM_SPECIAL, SEGMENT_A, SEGMENT_B

_FEATURES, _STEPS = range(2)  # Numbers that are folded into the dropout seed.


@ANSWER_MODULES.register("san")
class StochasticAnswerHead(Head):
    """Answer module of MT-DNN (Liu et al., 2019, section 3; Liu et al., 2018).

    The tokens p of text A (the premise) and h of text B (the hypothesis) are compared in K steps:

        s⁰ = Σ_j α_j h_j,      α = softmax(h · w₁)
        xᵏ = Σ_j β_j p_j,      β = softmax(p · W₂ sᵏ⁻¹)
        sᵏ = GRU(sᵏ⁻¹, xᵏ)
        Pᵏ = softmax(W₃ [sᵏ; xᵏ; |sᵏ - xᵏ|; sᵏ ⊙ xᵏ] + b)
        P  = mean over k of Pᵏ

    In training, each Pᵏ is left out of the mean with probability `task.answer_dropout` (stochastic
    prediction dropout), unless all of them would be. Outputs: `logits` = log P, float32 [U, C].
    Labels: `label` int [U].

    Args:
      config: sections of the experiment; uses `model` and `task`.
    """

    def __init__(self, config: HeadSections, **kwargs):
        super().__init__(config, **kwargs)
        self.settings = config.task.settings(StochasticAnswerConfig)
        self.cell = keras.layers.GRUCell(
            config.model.d_model,
            kernel_initializer=normal(config.model.init_std),
            name="cell",
            dtype="float32",
        )
        self.logits = self.dense(num_classes(config), "logits")

    def build(self, input_shape):
        width, init_std = self.config.model.d_model, self.config.model.init_std

        def weight(name, shape):
            return self.add_weight(name=name, shape=shape, initializer=normal(init_std))

        self.hypothesis_kernel = weight("hypothesis_kernel", [width])
        self.premise_kernel = weight("premise_kernel", [width, width])
        self.build_parts(cell=width, logits=4 * width)
        super().build(input_shape)

    def call(self, content_USTD, inputs, seed=None):
        premise_UXD, is_premise_UX = _text(content_USTD, inputs, SEGMENT_A)
        hypothesis_UXD, is_hypothesis_UX = _text(content_USTD, inputs, SEGMENT_B)
        score_UX = tf.linalg.matvec(hypothesis_UXD, tf.convert_to_tensor(self.hypothesis_kernel))
        state_UD = _attend(hypothesis_UXD, score_UX, is_hypothesis_UX)
        log_p = []
        for step in range(self.settings.answer_steps):
            key_UD = tf.einsum("ud,ed->ue", state_UD, self.premise_kernel)
            score_UX = tf.einsum("uxe,ue->ux", premise_UXD, key_UD)
            read_UD = _attend(premise_UXD, score_UX, is_premise_UX)
            state_UD, _ = self.cell(read_UD, [state_UD])
            features_UF = tf.concat(
                [state_UD, read_UD, tf.abs(state_UD - read_UD), state_UD * read_UD], axis=1
            )
            step_seed = fold_in(fold_in(seed, _FEATURES), step)
            features_UF = dropout(features_UF, self.config.model.dropout, step_seed)
            log_p.append(tf.nn.log_softmax(self.logits(features_UF)))
        return {"logits": self._log_mean(tf.stack(log_p, axis=1), seed)}

    def _log_mean(self, log_p_UKC, seed):
        """Log of the mean of the K distributions, or of those that dropout keeps; [U, C]."""
        num_units, num_steps, _ = tf.unstack(tf.shape(log_p_UKC))
        is_kept_UK = tf.fill([num_units, num_steps], True)
        rate = self.settings.answer_dropout
        if seed is not None and rate:
            shape = [log_p_UKC.shape[0] or num_units, log_p_UKC.shape[1]]
            is_kept_UK = keep_mask(shape, rate, fold_in(seed, _STEPS))
            is_kept_UK |= ~tf.reduce_any(is_kept_UK, axis=1, keepdims=True)
        count_U1 = tf.reduce_sum(tf.cast(is_kept_UK, tf.float32), axis=1, keepdims=True)
        log_p_UKC = tf.where(is_kept_UK[..., None], log_p_UKC, MASKED)
        return tf.reduce_logsumexp(log_p_UKC, axis=1) - tf.math.log(count_U1)

    def loss(self, outputs, labels):
        smoothing = self.settings.label_smoothing
        return label_cross_entropy(outputs["logits"], labels["label"], smoothing)

    def label_rule(self):
        from official.xlnet.modeling.heads.label_rule import rule_of_classes

        return rule_of_classes(self.config.task)


def _text(content_USTD, inputs, segment: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Hidden states float32 [U, S·T, D] of all windows, and which are words of a segment."""
    sequences, tokens, width = content_USTD.shape[1:]
    in_segment_UST = inputs["segment_ids"][:, -sequences:] == segment
    is_word_UST = inputs["token_ids"][:, -sequences:] >= NUM_SPECIAL
    is_text_UST = in_segment_UST & is_word_UST & ~inputs["is_padding"][:, -sequences:]
    content_UXD = tf.reshape(tf.cast(content_USTD, tf.float32), [-1, sequences * tokens, width])
    return content_UXD, tf.reshape(is_text_UST, [-1, sequences * tokens])


def _attend(states_UXD, score_UX, is_text_UX):
    """Mean of the states, weighted by the softmax of their scores; 0 where there is no text."""
    weight_UX = tf.nn.softmax(tf.where(is_text_UX, score_UX, MASKED))
    weight_UX *= tf.cast(is_text_UX, tf.float32)
    return tf.einsum("ux,uxd->ud", weight_UX, states_UXD)
