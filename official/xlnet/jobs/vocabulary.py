"""Vocabularies: trained on text, or the vocabulary of a trained model with pieces of a domain."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Annotated, Any

import sentencepiece

from data_prep.corpus.corpus import DataFrame
from data_prep.corpus.vocabulary import read_sample
from data_prep.settings import SampleOptions
from official.xlnet.configs.validation import require_one_of
from official.xlnet.files.arguments import AnyPath, OutputDirectory, Path
from official.xlnet.files.new_folder import new_folder
from official.xlnet.files.public import public
from official.xlnet.files.schema import Range


@public()
def extend_vocabulary(
    model: Path,
    inputs: AnyPath | Sequence[AnyPath] | DataFrame,
    output: OutputDirectory,
    num_pieces: Annotated[int, Range(1)],
    **options: Any,
) -> dict[str, Any]:
    """Adds pieces of a domain to the vocabulary of a trained model; writes a model directory.

    Ids and scores of the old pieces stay, so text without new pieces is tokenized, and read by the
    model, as before. The embedding of a new piece is the mean embedding of the pieces that it
    replaces (see `checkpoints.extended_model`), all other weights are the same. The model is then
    to be pre-trained further on the domain. The output is created atomically.

    Args:
      model: a model directory, HF folder or TF1 release.
      inputs: text of the domain, as `train_vocabulary` takes it.
      output: output directory; must not exist or be empty.
      num_pieces: number of pieces to add.
      **options: how the text is read and sampled, as in `train_vocabulary`: `sample_bytes`, `seed`,
        `progress`, `format`, `text_field`, `on_bad_utf8` and `max_lost`.

    Returns:
      A dictionary with:
        vocab_size: vocabulary size, new pieces included.
        coverage: fraction of the characters of the text that the vocabulary covers.
        new_pieces: number of pieces added.
        tokens_before, tokens_after: tokens of the text (of its sample) in the old and in the new
          vocabulary.

    Raises:
      ConfigError: the model's network is not XLNet's, or an argument is out of range.
      DataError: the model or the text cannot be read, the text does not have so many pieces that
        shorten it, or the output already exists.

    Example:
      >>> extend_vocabulary("runs/general", ["corpus/*.txt"], "runs/extended", 2000)["vocab_size"]
      34000
    """
    from data_prep.corpus import vocabulary_extension
    from official.xlnet.checkpoints.any_format import load_tokenizer
    from official.xlnet.checkpoints.extended_model import write_extended
    from official.xlnet.checkpoints.source import open_source

    sampling = SampleOptions(**options)
    with new_folder(output) as folder:
        source = open_source(model)
        require_one_of("model.network", source.config.model.network, ("xlnet",))
        tokenizer = load_tokenizer(model)
        sampling = dataclasses.replace(sampling, keep_whitespace=tokenizer.keep_whitespace)
        sample = read_sample(inputs, sampling, tokenizer.lowercase, tokenizer.keep_accents)
        extension = vocabulary_extension.extend_vocabulary(tokenizer, sample, num_pieces)
        write_extended(
            folder, source, extension.model_proto, extension.replaced, extension.log_share
        )
    processor = sentencepiece.SentencePieceProcessor(model_proto=extension.model_proto)
    return {
        "vocab_size": tokenizer.vocab_size + num_pieces,
        "coverage": sample.coverage(processor),
        "new_pieces": num_pieces,
        "tokens_before": extension.tokens_before,
        "tokens_after": extension.tokens_after,
    }
