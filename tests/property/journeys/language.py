"""Journeys with a language model: vocabulary, records, pre-training, and what reads the model."""

import contextlib
import json
import pathlib
import re
import shutil
import zipfile

import numpy as np
import tensorflow as tf
import tf_keras
import yaml

from official.xlnet.checkpoints.any_format import load_config, load_tokenizer
from official.xlnet.checkpoints.model_directory import load_encoder, load_pretrainer
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.pretraining_dataset import pretraining_dataset
from official.xlnet.data.schema import Manifest
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.runtime.history import read_history
from official.xlnet.tokenization.graph.packing import pack_columns
from official.xlnet.tokenization.special_tokens import EOD_ID
from official.xlnet.training.optimization import create_optimizer
from tests.e2e.test_version_0_1 import ARCHIVE
from tests.helpers.checkpoints import hf_of_tf1, random_values, tf1_shapes, write_hf, write_tf1
from tests.property.journeys import oracles
from tests.property.journeys.draws.corpus import documents_of, write_corpus
from tests.property.journeys.draws.vocabulary import train
from tests.property.journeys.promises import close, promise
from tests.property.journeys.repeats import files_of, repeated
from tests.property.journeys.verbs import Refused, World

_LONG = 80  # Windows.
TEXTS = (
    "the water was made",
    "",
    "find people 1,000 Zürich",
    "人权自由平等",
    "a",
    "мир и ACGT " * 9,
)


def make_vocabulary(world: World) -> str:
    """Makes the vocabulary of a journey; returns its directory. Advice on its size is followed."""
    journey, folder = world.journey, world.folder / "vocab"
    vocabulary = journey["vocabulary"]
    corpus = write_corpus(journey["corpus"], world.folder / "corpus")
    if vocabulary["kind"] != "ours":
        train(vocabulary, journey["corpus"], vocabulary["lowercase"], folder / "spiece.model")
        return str(folder)
    flags = [f"--{key}" for key in ("lowercase", "keep_accents") if vocabulary[key]]
    size = vocabulary["size"]
    for _ in range(3):
        try:
            result = world("vocab", *corpus, f"--output={folder}", f"--size={size}", *flags)
            promise(result["vocab_size"] == size, "vocab makes the size", (result, size))
            return str(folder)
        except Refused as error:
            advice = re.search(r"at (most|least) (\d+)", error.sentence)
            promise(bool(advice), "vocab says which size it takes", error.sentence)
            world.counts[f"advice: {error.sentence[:60]}"] += 1
            promise(int(advice[2]) != size, "vocab's advice helps", error.sentence)
            size = int(advice[2])
    raise AssertionError("vocab's advice does not end")


def write_config(world: World, vocab: str) -> str:
    """Writes the configuration of a journey; its `model.vocab_size` goes by the vocabulary."""
    sections: dict = {}
    for key, value in world.journey["config"].items():
        section, name = key.split(".")
        if section != "task":
            sections.setdefault(section, {})[name] = value
    pieces = load_pieces(f"{vocab}/spiece.model")
    sections["model"]["vocab_size"] = pieces + world.journey["vocabulary"]["model_has_more"]
    path = world.folder / "config.yaml"
    path.write_text(yaml.safe_dump(sections))
    return str(path)


def load_pieces(path: str) -> int:
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_file=path).vocab_size()


def make_records(world: World, vocab: str, config: str) -> str:
    """Prepares the corpus, and holds the records against it; returns their directory."""
    arguments = [f"--vocab={vocab}", f"--config={config}", "--num_workers=1"]
    inputs = [f"--input={','.join(str(p) for p in sorted((world.folder / 'corpus').iterdir()))}"]
    if world.journey["number"] % 3 == 0:
        arguments.append("--compress")
    counts = repeated(
        world,
        "prepare",
        lambda out: [*inputs, *arguments, f"--output={out}"],
        world.folder / "records",
        files_of,
    )
    records = world.folder / "records"
    documents = documents_of(world.journey["corpus"])
    oracles.records_hold_the_text(
        documents, f"{vocab}/spiece.model", XLNetConfig.load(config), records, counts
    )
    shown = world("inspect records", records, f"--output={world.folder / 'window.html'}")
    promise(shown["targets"] >= 0, "inspect shows targets", shown)
    return str(records)


def make_source(world: World, vocab: str, config: str) -> str | None:
    """A model in another format to start from, of the sizes of the configuration; or None."""
    source = world.journey["source"]
    if source not in ("hf", "tf1") or world.journey["is_wild"]:
        return None
    settings = XLNetConfig.load(config)
    if not _others_have(settings):
        return None
    model, data = settings.model, settings.data
    if source == "tf1" and (data.lowercase or data.keep_accents):
        return None  # A folder of TF1 has no place for them.
    sizes = {"n_layer": model.num_layers, "d_model": model.d_model, "n_head": model.num_heads}
    sizes |= {"d_head": model.d_head, "d_inner": model.d_inner}
    names = {"sizes": sizes, "vocab_size": model.vocab_size}
    values = random_values(tf1_shapes(untie_r=model.untie_r, **names), world.journey["number"])
    path = f"{world.folder}/{source}"
    if source == "tf1":
        return write_tf1(path, f"{vocab}/spiece.model", values, model.untie_r, **names)
    sizes |= {"vocab_size": model.vocab_size, "untie_r": model.untie_r}
    values = hf_of_tf1(values, model.num_layers)
    write_hf(path, f"{vocab}/spiece.model", values, **sizes)
    text = {"do_lower_case": data.lowercase, "keep_accents": data.keep_accents}
    pathlib.Path(path, "tokenizer_config.json").write_text(json.dumps(text))
    return path


def _others_have(config: XLNetConfig) -> bool:
    model = config.model
    return model.network == "xlnet" and model.depth == "stacked" and model.activation == "gelu"


def make_model(world: World, records: str, config: str, source: str | None) -> str:
    """Pre-trains; returns the model directory."""
    strategy, replicas = world.journey["strategy"], len(tf.config.list_logical_devices("CPU"))
    base = [f"--config={config}", f"--data={records}"]
    base += [f"--init_from={source}"] if source else []
    settings = XLNetConfig.load(config)
    with _graph_of_many_windows(world, records, settings.training.evaluation_steps):
        result = repeated(
            world,
            "pretrain",
            lambda out: [*base, f"--strategy={strategy}", f"--model_dir={out}"],
            world.folder / "model",
            training_of,
        )
    losses = training_of(world.folder / "model")[0]
    promise(result["step"] == settings.training.num_steps, "pretrain takes its steps", result)
    has_dropout = settings.model.dropout or settings.model.dropatt
    has_dropout = has_dropout or settings.model.activation_dropout
    if strategy == "mirrored" and replicas > 1 and not has_dropout and _is_exact(settings):
        world("pretrain", *base, "--strategy=one_device", f"--model_dir={world.folder / 'alone'}")
        alone = training_of(world.folder / "alone")[0]
        same = len(alone) == len(losses) and all(
            a[0] == b[0] and close(a[1], b[1], 2e-3) for a, b in zip(alone, losses, strict=True)
        )
        promise(same, "replicas change nothing", (losses, alone))
    if strategy == "one_device" and source is None and world.journey["number"] % 3 == 0:
        _keras_trains_alike(settings, records, losses)
    return str(world.folder / "model")


def _keras_trains_alike(config: XLNetConfig, records: str, losses: list) -> None:
    """Plain Keras, compiled and fitted by hand, takes the steps that `pretrain` takes."""
    found = []

    class Losses(tf_keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            self.model.reset_metrics()

        def on_train_batch_end(self, batch, logs=None):
            found.append(logs["loss"])

    tf_keras.utils.set_random_seed(config.training.seed)
    data = pretraining_dataset(records, config.training.batch_size, config=config)
    model = XLNetPretrainer(config)
    model.compile(create_optimizer(config.training, config.model.num_layers))
    model.fit(data, steps_per_epoch=config.training.num_steps, verbose=0, callbacks=[Losses()])
    by_step = dict(losses)
    if config.training.steps_per_execution == 1:
        for step, loss in enumerate(found, 1):
            same = step not in by_step or close(by_step[step], loss, 2e-3)
            promise(same, "Keras trains as pretrain does", (losses, found))


def _is_exact(config: XLNetConfig) -> bool:
    """Whether sums in another order give about the same updates."""
    return config.training.precision == "float32" and config.training.optimizer != "muon"


def training_of(folder) -> tuple:
    """Losses and weights of a run."""
    checkpoint = tf.train.latest_checkpoint(str(folder))
    reader = tf.train.load_checkpoint(checkpoint)
    types = reader.get_variable_to_dtype_map()
    weights = {k: reader.get_tensor(k).tobytes() for k in sorted(types) if types[k] != tf.string}
    return [[line["step"], line["loss"]] for line in read_history(str(folder))], weights


def old_model(world: World) -> tuple[str, str]:
    """(model, records) of an earlier version."""
    folder = world.folder / "old"
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    return str(folder / "pretrained"), str(folder / "records")


def read_model(world: World, model: str, records: str | None) -> None:
    """The verbs that read a language model, in the order of the journey."""
    texts = world.folder / "texts.txt"
    texts.write_text("\n".join(TEXTS) + "\n")
    readers = {
        "evaluate": lambda: records and _evaluate(world, model, records),
        "score": lambda: _score(world, model, texts),
        "generate": lambda: _generate(world, model, texts),
        "embed": lambda: _embed(world, model, texts),
        "export": lambda: _export(world, model),
        "convert": lambda: _convert(world, model),
    }
    for verb in world.journey["reading"]:
        try:
            readers[verb]()
        except Refused as error:
            world.refused(error, load_config(model))


def _evaluate(world: World, model: str, records: str) -> None:
    splits = Manifest.load(records).splits
    split = "heldout" if "heldout" in splits else "train"
    with _graph_of_many_windows(world, records):
        _compare_losses(world, model, records, split, splits[split].num_lanes)


@contextlib.contextmanager
def _graph_of_many_windows(world: World, records: str, is_evaluated=True):
    """Evaluation of many windows is traced, even in an eager journey: it takes less time."""
    splits = Manifest.load(records).splits
    if is_evaluated and splits["heldout" if "heldout" in splits else "train"].windows > _LONG:
        tf.config.run_functions_eagerly(False)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(world.journey["is_eager"])


def _compare_losses(world: World, model: str, records: str, split: str, lanes: int) -> None:
    got = world("evaluate", f"--model={model}", f"--data={records}", f"--split={split}")
    # Other batch mates: as few rows as can be.
    config = load_config(model)
    rows = 2 if config.data.bidirectional else 1
    promise(lanes % rows == 0, "lanes come in pairs", lanes)
    data = pretraining_dataset(records, rows, split, config, epochs=1)
    network = load_pretrainer(model, config, batch_size=rows, dtype="float32")
    loss, targets = oracles.mean_loss(network.predict(data, verbose=0))
    found = got["loss"], got["targets"]
    promise(found[1] == targets, "evaluate counts the targets", (found, targets))
    promise(
        close(found[0], loss), "evaluate is the mean over what predict_step returns", (found, loss)
    )


def _score(world: World, model: str, texts) -> None:
    out = world.folder / "scores.jsonl"
    command = ["score", f"--model={model}"]
    result = repeated(
        world,
        "score",
        lambda path: [*command[1:], f"--input={texts}", f"--output={path}"],
        out,
        lambda path: path.read_bytes(),
    )
    lines, config = oracles.json_lines(out), load_config(model)
    promise([row["text"] for row in lines] == list(TEXTS), "every text has its score", lines)
    for row in lines:
        ids = oracles.encode(f"{model}/spiece.model", row["text"], config)
        promise(len(row["tokens"]) == len(ids), "score reads all tokens", (row, ids))
        promise(close(sum(row["log_likelihoods"]), row["total"], 1e-3), "scores add up", row)
        promise(all(x <= 1e-6 for x in row["log_likelihoods"]), "scores are log-likelihoods", row)
    if config.objective.kind == "causal":
        _score_is_causal(model, lines)
    total = sum(row["total"] for row in lines)
    mean = -total / max(1, result["tokens"])
    if mean < 80:
        promise(close(result["perplexity"], np.exp(mean), 1e-3), "perplexity follows", result)
    world(*command, f"--text={TEXTS[2]}", f"--output={out}.alone")
    [alone] = oracles.json_lines(f"{out}.alone")
    promise(close(alone["total"], lines[2]["total"], 1e-3), "batch mates change no score", alone)


def _score_is_causal(model: str, lines: list[dict]) -> None:
    """Scores of short texts are those of the content stream after `<eod>`, as in training."""
    config = load_config(model)
    config.model.mem_len = 0
    network = load_pretrainer(model, config, batch_size=1, dtype="float32")
    for row in lines:
        ids = [EOD_ID, *oracles.encode(f"{model}/spiece.model", row["text"], config)]
        if not 1 < len(ids) <= config.data.reuse_len:
            continue
        places = np.arange(len(ids), dtype=np.int32)[None]
        inputs = {"token_ids": np.array([ids], np.int32), "segment_ids": np.zeros_like(places)}
        inputs |= {"order": places, "content_positions": places[:, :-1]}
        if config.data.bidirectional:
            inputs["is_reversed"] = np.array([False])
        logits = network({k: tf.constant(x) for k, x in inputs.items()})["logits"].numpy()
        outputs = {"logits": logits, "labels": np.array([ids[1:]])}
        loss, number = oracles.mean_loss(outputs | {"target_mask": np.ones_like(places[:, 1:])})
        promise(
            close(-loss * number, row["total"], 1e-3),
            "score is that of the content stream",
            (loss * number, row),
        )


def _generate(world: World, model: str, texts) -> None:
    out = world.folder / "generated.jsonl"
    flags = [f"--model={model}", "--num_tokens=3", "--temperature=0"]
    repeated(
        world,
        "generate",
        lambda path: [*flags, f"--input={texts}", f"--output={path}"],
        out,
        lambda path: path.read_bytes(),
    )
    lines = oracles.json_lines(out)
    promise([row["text"] for row in lines] == list(TEXTS), "every text is continued", lines)
    world("generate", *flags, f"--text={TEXTS[0]}", f"--output={out}.alone")
    [alone] = oracles.json_lines(f"{out}.alone")
    promise(alone == lines[0], "batch mates change no continuation", (alone, lines[0]))


def _embed(world: World, model: str, texts) -> None:
    out = world.folder / "vectors.npy"
    repeated(
        world,
        "embed",
        lambda path: [f"--model={model}", f"--input={texts}", f"--output={path}"],
        out,
        lambda path: path.read_bytes(),
    )
    vectors = np.load(out)
    promise(len(vectors) == len(TEXTS), "every text has its vector", vectors.shape)
    promise(bool(np.isfinite(vectors).all()), "vectors are finite")
    encoder, tokenizer = load_encoder(model), load_tokenizer(model)
    length = encoder.config.data.seq_len
    for n, text in enumerate(TEXTS[:3]):
        # Alone, and padded to the full length.
        inputs = pack_columns([[tokenizer.encode(text)]], length)
        if encoder.config.objective.kind == "causal":
            inputs["order"] = np.arange(length, dtype=np.int32)[None]
        states = encoder({name: tf.constant(x) for name, x in inputs.items()})["content"]
        wanted = states.numpy()[0][~inputs["is_padding"][0]].mean(0)
        promise(
            np.allclose(vectors[n], wanted, rtol=1e-3, atol=1e-3),
            "embed is the mean of the encoder's vectors",
            (vectors[n], wanted),
        )


def _export(world: World, model: str) -> None:
    import tensorflow_text  # noqa: F401  The graph has its operations.

    out = world.folder / f"exported_{pathlib.Path(model).name}"
    world("export", f"--model={model}", f"--output={out}", "--head=lm")
    served = tf.saved_model.load(f"{out}/1").signatures["serving_default"]
    texts = [TEXTS[0], TEXTS[2]]
    answers = {name: x.numpy() for name, x in served(text=tf.constant(texts)).items()}
    for n, text in enumerate(texts):
        path = f"{out}.{n}"
        world("score", f"--model={model}", f"--text={text}", f"--output={path}")
        [row] = oracles.json_lines(path)
        got, length = float(answers["log_likelihood"][n]), int(answers["num_tokens"][n])
        if answers["is_truncated"][n]:
            promise(length < len(row["tokens"]), "what is truncated was longer", (length, row))
            continue
        promise(close(got, row["total"], 1e-3), "the exported model scores alike", (got, row))


def _convert(world: World, model: str) -> None:
    form = "hf" if world.journey["number"] % 2 else "tf1"
    there, back = world.folder / "there", world.folder / "back"
    for path in (there, back):
        shutil.rmtree(path, ignore_errors=True)
    said = world("convert", f"--source={model}", f"--output={there}", f"--to={form}")["left_over"]
    world("convert", f"--source={there}", f"--output={back}")
    before, after = (_weights(str(path)) for path in (model, back))
    lost = before.keys() - after.keys()
    promise(len(lost) <= len(said), "conversion names the variables it leaves out", (lost, said))
    # The rows of padding, whose bias is such that they are never predicted elsewhere.
    pieces = load_config(model).model.vocab_size
    for name, value in after.items():
        number = pieces if name == "lm_head/bias:0" else None
        same = np.array_equal(value[:number], before[name][:number])
        promise(same, "conversion keeps the weights", name)


def _weights(path: str) -> dict:
    model = load_pretrainer(path, batch_size=2, dtype="float32")
    return {v.name: v.numpy() for v in model.trainable_variables}
