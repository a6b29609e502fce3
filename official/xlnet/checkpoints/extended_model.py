"""Models whose vocabulary got new pieces: their rows of the embedding and of the output bias.

A new piece starts where the old pieces that it replaces are:

    embedding(w) = mean over i of embedding(s_i)
    bias(w)      = mean over i of (bias(s_i) + log share)

where s_1 … s_k are the old pieces that spelled w, and `log share` is the mean over i of the log of
the share of the occurrences of s_i in the text of the domain that were a part of w. Since the head
is tied to the embedding, the logit of w is then the mean over i of logit(s_i), plus log share:
every s_i gives an estimate of the probability of w, and w starts with their geometric mean. The
shares of an old piece sum to at most 1, so all new pieces together get at most the probability of
the old ones, however many they are; with the mean of the biases alone, each would get the
probability of an old one.
Rows of padding become rows of new pieces. All other weights stay as they are.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import numpy as np

from official.xlnet.checkpoints.convert.variable_map import Weights
from official.xlnet.checkpoints.model_directory import PARTS
from official.xlnet.checkpoints.source import Source
from official.xlnet.checkpoints.xlnet_format import write_variables
from official.xlnet.errors import require_data
from official.xlnet.tokenization.vocabulary_file import write_vocabulary

_EMBEDDING, _BIAS = "encoder/word_embedding/embeddings", "lm_head/bias"


def write_extended(
    folder: str,
    source: Source,
    model_proto: bytes,
    replaced: Sequence[Sequence[int]],
    log_share: np.ndarray,
) -> None:
    """Writes a model with new pieces as a model directory, without the state of its optimizer.

    Args:
      folder: an existing empty directory.
      source: the model, in any format.
      model_proto: the extended vocabulary: the old one, and the new pieces after it.
      replaced: for each new piece, ids of the old pieces that it replaces.
      log_share: float [number of new pieces], see above.
    """
    config = copy.deepcopy(source.config)
    config.model.vocab_size += len(replaced)
    if config.model.embedding_rows <= config.model.vocab_size:
        config.model.embedding_rows = 0
    config.check()
    write_variables(folder, _extended(source, replaced, log_share))
    write_vocabulary(model_proto, folder)
    config.save(folder)


def _extended(
    source: Source, replaced: Sequence[Sequence[int]], log_share: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    """Name and value of every variable of the model."""
    # A model directory may have parts that no other format has.
    weights = source if source.format == "xlnet" else Weights(source, "xlnet")
    model = source.config.model
    expected = (model.num_embeddings, model.d_model)
    embedding_shape = weights.shapes.get(_EMBEDDING)
    where = f"{source.path}: variable {_EMBEDDING!r}"
    require_data(embedding_shape == expected, where, f"shape {expected}", embedding_shape)
    parts = {*PARTS, *(stage.name for stage in source.config.objective.stages())}
    for name in weights.shapes:
        if name.partition("/")[0] not in parts:
            continue
        value = weights.read(name)
        if name in (_EMBEDDING, _BIAS):
            rows = np.stack([value[list(ids)].mean(axis=0) for ids in replaced])
            if name == _BIAS:
                rows += log_share
            rest = value[model.vocab_size + len(rows) :]
            value = np.concatenate([value[: model.vocab_size], rows.astype(value.dtype), rest])
        yield name, value
