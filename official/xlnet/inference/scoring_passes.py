"""Passes of the network over rows of tokens: log-likelihoods in an order, or given all others.

Passes return readings of tokens, float64 [T, R]: their log-likelihoods and, if asked for, the
entropies of their distributions.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from official.xlnet.inference.network.inference_encoder import last_positions
from official.xlnet.inference.network.language_model_network import LanguageModelNetwork
from official.xlnet.inference.scoring_windows import Row, masked_batches, windows_of
from official.xlnet.inference.text_parts import HIDDEN, TARGET, TextParts
from official.xlnet.modeling.models.language_model import LanguageModel
from official.xlnet.tokenization.special_tokens import MASK_ID


class ScoringPasses:
    """Copies a model, and runs it over the windows of texts.

    Args:
      model: a pre-trained model.

    Attributes:
      is_causal: whether the model predicts the next token from the content stream.
      num_windows: number of windows that have been scored.
    """

    def __init__(self, model: LanguageModel):
        self._config = model.config
        self._masks = model.config.objective.predicts_masked
        with_memory = not self._masks and model.config.model.network == "xlnet"
        self._network = LanguageModelNetwork(
            model, model.config.data.seq_len, "float32", with_memory
        )
        self.is_causal = self._network.is_causal
        self.num_windows = 0

    def rows_in_order(
        self, rows: list[Row], whole_given: bool, with_entropies: bool
    ) -> list[np.ndarray]:
        """Scores rows of tokens, each in its order."""
        is_causal = self.is_causal
        results = [np.zeros([len(parts.ids), 1 + with_entropies]) for parts, _ in rows]
        longest_first = sorted(range(len(rows)), key=lambda row: -len(results[row]))
        while longest_first:
            windows = list(windows_of(self._config, len(results[longest_first[0]])))
            batch_size = windows[0].batch_size(len(longest_first))
            batch, longest_first = longest_first[:batch_size], longest_first[batch_size:]
            # Copies of the last row give the batch its static size.
            padded = [rows[row] for row in batch + (batch_size - len(batch)) * batch[-1:]]
            ids, memory = [parts.ids for parts, _ in padded], None
            for window in windows:
                inputs = window.inputs(ids, memory)
                if is_causal:
                    inputs["previous"] = tf.constant([*map(window.token_before, ids)], tf.int32)
                else:
                    orders = [window.order(*row, whole_given) for row in padded]
                    inputs["order"] = tf.constant(np.stack(orders), tf.int32)
                num_new = window.end - window.new
                self.num_windows += len(batch)
                scored_BPR, memory = self._in_order(
                    inputs, num_targets=num_new, with_entropies=with_entropies
                )
                for row, scored_PR in zip(batch, scored_BPR.numpy(), strict=False):
                    new = results[row][window.new : window.end]
                    new[:] = scored_PR[: len(new)]
        return results

    def each_token(self, parts: TextParts, with_entropies: bool) -> np.ndarray:
        """Pseudo log-likelihoods of one text: every target in a row of its own."""
        result, memory = np.zeros([len(parts.ids), 1 + with_entropies]), None
        for window in windows_of(self._config, len(parts.ids)):
            self.num_windows += 1
            role = parts.role[window.start : window.end]
            is_hidden_T = np.pad(role == HIDDEN, [0, window.length - len(role)])
            known = window.num_known
            positions = known + np.flatnonzero(role[known:] == TARGET)
            batch_size = window.batch_size(len(positions))
            for first in range(0, len(positions), batch_size):
                part = positions[first : first + batch_size]
                position_B = np.pad(part, [0, batch_size - len(part)], mode="edge")
                inputs = window.inputs(batch_size * [parts.ids], memory)
                scored_BR = self._given_all_others(
                    inputs,
                    tf.constant(position_B, tf.int32),
                    tf.constant(is_hidden_T),
                    with_entropies=with_entropies,
                )
                result[window.start + part] = scored_BR.numpy()[: len(part)]
            if window.end < len(parts.ids):
                # The memory of the next window has attended to every token of this one.
                memory = self._next_memory(window.inputs([parts.ids], memory))
        return result

    def masked(self, rows: list[Row], is_pseudo: bool, with_entropies: bool) -> list[np.ndarray]:
        """Scores rows of tokens: each target where it is masked with what follows it."""
        results = [np.zeros([len(parts.ids), 1 + with_entropies]) for parts, _ in rows]
        for window, batch in masked_batches(self._config, rows, is_pseudo):
            # Copies of the last row give the batch its static size.
            self.num_windows += len(batch)
            padded = batch + (window.batch_size(len(batch)) - len(batch)) * batch[-1:]
            place_B = tf.constant([token.place for token in padded], tf.int32)
            label_B = tf.constant([rows[t.row][0].ids[t.position] for t in padded], tf.int32)
            inputs = window.inputs([token.token_ids for token in padded])
            scored_BR = self._where_masked(
                inputs, place_B, label_B, with_entropies=with_entropies
            ).numpy()
            for token, scored in zip(batch, scored_BR, strict=False):
                results[token.row][token.position] = scored
        return results

    def _readings(self, vectors, labels, with_entropies):
        """Readings of the tokens that vectors [..., P, D] predict, float32 [..., P, R]."""
        if with_entropies:
            return self._network.log_likelihoods_and_entropies(vectors, labels)
        return self._network.log_likelihoods(vectors, labels)[..., None]

    @tf.function(autograph=False)
    def _in_order(self, inputs, num_targets, with_entropies):
        """Values log p(x_t | x_j with order[j] < order[t]) of the last P tokens, and the memory."""
        if self._network.is_causal:
            vectors_BPD, memory = self._network.left_to_right(**inputs)
        else:
            target_1P = last_positions(num_targets, inputs["token_ids"].shape[1])
            vectors_BPD, memory = self._network.encoder.in_order(
                **inputs, target_positions=target_1P
            )
        labels_BP = inputs["token_ids"][:, -num_targets:]
        return self._readings(vectors_BPD, labels_BP, with_entropies), memory

    @tf.function(autograph=False)
    def summary_of_predictions(self, summarize, token_ids, is_padding, order):
        """Computes a number for each p(· | x_j with order[j] < order[t]), of every token t.

        Args:
          summarize: function from log-likelihoods, float32 [B, T, V], to the number, or several,
            of each token; the graph is kept for it.
          token_ids: int32 [B, T].
          is_padding: bool [B, T].
          order: int32 [B, T], the factorization order; tokens of the largest one are unknown. Not
            read by a causal model.

        Returns:
          float32 [B, T], or [B, T, numbers].
        """
        if self._masks:
            token_ids = tf.where(order == tf.reduce_max(order), MASK_ID, token_ids)
            vectors_BTD, _ = self._network.encoder(token_ids, is_padding)
        elif self.is_causal:
            vectors_BTD, _ = self._network.left_to_right(token_ids, is_padding)
        else:
            vectors_BTD, _ = self._network.encoder.in_order(token_ids, is_padding, order)
        return summarize(tf.nn.log_softmax(self._network.logits(vectors_BTD)))

    @tf.function(autograph=False)
    def _given_all_others(self, inputs, position_B, is_hidden_T, with_entropies):
        """Values log p(x_t | x_j for all j ≠ t) of one token t of each row."""
        position_B1 = position_B[:, None]
        order_BT = tf.one_hot(position_B, inputs["token_ids"].shape[1], dtype=tf.int32)
        order_BT += 2 * tf.cast(is_hidden_T, tf.int32)
        vectors_B1D, _ = self._network.encoder.in_order(
            **inputs, order=order_BT, target_positions=position_B1
        )
        label_B1 = tf.gather(inputs["token_ids"], position_B1, batch_dims=1)
        return self._readings(vectors_B1D, label_B1, with_entropies)[:, 0]

    @tf.function(autograph=False)
    def _next_memory(self, inputs):
        return self._network.encoder(**inputs)[1]

    @tf.function(autograph=False)
    def _where_masked(self, inputs, position_B, label_B, with_entropies):
        """Values log p(label | text in which it is masked) of one token of each row."""
        content_BTD, _ = self._network.encoder(**inputs)
        vectors_BD = tf.gather(content_BTD, position_B, batch_dims=1)
        return self._readings(vectors_BD, label_B, with_entropies)
