"""Right input through the verbs: configurations that pair every value with every other.

Each journey has a configuration in which keys have been set that no other test sets together. It
prepares text, pre-trains, fine-tunes, and holds what reads the models against each other.
`make journeys N=40` makes more of them than CI does.
"""

import dataclasses
import functools
import itertools
import json
import os
import pathlib
import random

import numpy as np
import pytest
import tensorflow as tf
import yaml

from official import xlnet
from official.xlnet.api.convert import convert
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.pretraining_dataset import pretraining_dataset
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.modeling.ops.keras import keras
from tests.helpers.task_corpora import KINDS
from tests.helpers.world import command

NUM_JOURNEYS = int(os.environ.get("XLNET_JOURNEYS", 5))
BASE = {
    "model": {"num_layers": 1, "d_model": 8, "num_heads": 2, "d_inner": 11},
    "data": {"seq_len": 29, "reuse_len": 11, "num_predict": 5, "num_lanes": 8},
    "training": {"batch_size": 8, "num_steps": 3, "warmup_steps": 1, "learning_rate": 0.003},
    "task": {"max_length": 23, "num_buckets": 1},
}
BASE["data"]["heldout_fraction"] = 0.3
# Each pair of values of these is in some journey, as far as they go together.
VALUES = {
    "model.network": ("xlnet", "bert", "gpt2"),
    "model.mem_len": (7, 0),
    "model.depth": ("stacked", "shared", "adaptive"),
    "model.attention_type": ("bi", "uni"),
    "model.recompute": ("none", "attention", "block"),
    "model.clamp_len": (0, 3),
    "model.untie_r": (True, False),
    "model.embedding_rows": (0, 256),
    "model.max_positions": (64,),
    "data.bidirectional": (True, False),
    "data.target_unit": ("word", "token"),
    "data.lowercase": (False, True),
    "data.keep_accents": (False, True),
    "objective.kind": ("permutation", "denoising", "causal"),
    "objective.next_sentence": (False, True),
    "objective.auxiliary": ((), ("token_document",)),
    "training.optimizer": ("adamw", "lamb", "muon"),
    "training.schedule": ("polynomial", "cosine", "constant_with_cooldown"),
    "training.accumulate_steps": (1, 2),
    "training.parallel_slices": (0, 2),
    "training.precision": ("float32", "mixed_bfloat16", "mixed_float16"),
    "training.steps_per_execution": (1, 3),
    "task.long_texts": ("truncate", "windows", "memory"),
    "task.summary": ("last", "first", "mean", "attn"),
    "task.freeze_encoder": (False, True),
    "task.name": tuple(kind for kind in KINDS if kind != "multitask"),
}
TEXTS = ("the water was made", "", "find people 1,000 Zürich", "人权自由平等", "a")


def repair(values):
    """Makes the values go together, by what the documentation says of each."""
    network, kind = values["model.network"], values["objective.kind"]
    if network != "xlnet":
        values |= {"model.mem_len": 0, "model.clamp_len": 0, "model.recompute": "none"}
        values |= {"model.depth": "stacked", "data.bidirectional": False, "model.untie_r": True}
        values["model.attention_type"] = "bi" if network == "bert" else "uni"
        kind = values["objective.kind"] = "denoising" if network == "bert" else "causal"
    if values["model.mem_len"] == 0 and values["task.long_texts"] == "memory":
        values["task.long_texts"] = "windows"
    if values["task.name"] not in ("classification", "multi_label", "regression"):
        values["task.long_texts"], values["task.summary"] = "truncate", "last"
    if kind == "causal":
        values["objective.next_sentence"] = False
    if kind == "denoising" and values["model.mem_len"] == 0:
        values["objective.auxiliary"] = ()
    return values


def pairs(values):
    return set(itertools.combinations(sorted(values.items()), 2))


@functools.cache
def journeys(number):
    """Settings of so many journeys: each has the most pairs, of 30 draws, that none had before."""
    rng, covered, chosen = random.Random(0), set(), []
    for _ in range(number):
        draws = [repair({key: rng.choice(VALUES[key]) for key in VALUES}) for _ in range(30)]
        chosen.append(max(draws, key=lambda values: len(pairs(values) - covered)))
        covered |= pairs(chosen[-1])
    return chosen


@pytest.mark.nightly
def test_thirty_journeys_have_most_pairs():
    covered = set().union(*map(pairs, journeys(30)))
    possible = set().union(*map(pairs, journeys(120)))
    assert len(covered) > 0.85 * len(possible)


@dataclasses.dataclass
class Journey:
    values: dict
    world: object
    folder: pathlib.Path

    def config(self, *sections, **more):
        """Writes the named sections of the configuration; returns the file."""
        tree = {name: dict(BASE.get(name, {})) for name in sections}
        for key, value in (self.values | more).items():
            section, name = key.split(".")
            if section in sections and key != "task.name" and self._is_read(key):
                tree[section][name] = list(value) if isinstance(value, tuple) else value
        path = self.folder / f"{'_'.join(sections)}.yaml"
        path.write_text(yaml.safe_dump(tree))
        return str(path)

    def _is_read(self, key):
        """A key that its network, objective or task does not have is refused, so it is left out."""
        if key == "model.max_positions":
            return self.values["model.network"] != "xlnet"
        if self.values["model.network"] != "xlnet" and key in (
            *("model.depth", "model.untie_r", "model.clamp_len", "model.recompute"),
            *("model.mem_len", "data.target_unit"),
        ):
            return key in ("model.mem_len",)
        if self.values["objective.kind"] == "causal" and key in (
            *("data.target_unit", "objective.next_sentence"),
        ):
            return False
        is_text = self.values["task.name"] in ("classification", "multi_label", "regression")
        return is_text or key not in ("task.long_texts", "task.summary")

    def language(self):
        """Text to a language model, and everything that reads it."""
        flags = {key: self.values[f"data.{key}"] for key in ("lowercase", "keep_accents")}
        vocab, data, model = (str(self.folder / name) for name in ("vocab", "data", "model"))
        command("vocab", input=self.world.text, output=vocab, size=130, **flags)
        config = self.config("model", "data", "objective", "training", **{"model.vocab_size": 130})
        command("prepare", input=self.world.text, vocab=vocab, config=config, output=data)
        done = command("pretrain", config=config, data=data, output=model)
        assert done["step"] == 3 and np.isfinite(done["loss"])
        self.evaluated(model, data)
        if self.values["model.network"] == "xlnet":
            self.embedded(model)
            if self.values["objective.kind"] != "denoising":
                self.scored(model)
        self.converted(model)
        return model

    def evaluated(self, model, data):
        """The loss is the mean over what `predict_step` returns with other batch mates."""
        found = command("evaluate", model=model, data=data)
        config = XLNetConfig.load(f"{model}/config.yaml")
        windows = pretraining_dataset(data, 2, "heldout", config, epochs=1)
        network = xlnet.load_pretrainer(model, config, batch_size=2, dtype="float32")
        outputs = network.predict(windows, verbose=0)
        log_p = tf.nn.log_softmax(tf.cast(outputs["logits"], tf.float64)).numpy()
        nats = -np.take_along_axis(log_p, outputs["labels"][..., None], -1)[..., 0]
        is_target = outputs["target_mask"].astype(bool)
        assert found["targets"] == is_target.sum()
        assert found["loss"] == pytest.approx(nats[is_target].mean(), rel=1e-3)

    def scored(self, model):
        rows = xlnet.score(model, list(TEXTS))
        for row in rows:
            assert sum(row.log_likelihoods) == pytest.approx(row.total, abs=1e-3)
        [alone] = xlnet.score(model, [TEXTS[2]])
        assert alone.total == pytest.approx(rows[2].total, rel=1e-3)

    def embedded(self, model):
        """A vector is the mean of the encoder's vectors of the text alone."""
        vectors = xlnet.embed(model, list(TEXTS))
        tokenizer, encoder = xlnet.load_tokenizer(model), xlnet.load_encoder(model)
        inputs = tokenizer([TEXTS[2]])
        if self.values["objective.kind"] == "causal":
            inputs["order"] = np.arange(len(inputs["token_ids"][0]), dtype=np.int32)[None]
        states = encoder({name: tf.constant(x) for name, x in inputs.items()})["content"]
        np.testing.assert_allclose(vectors[2], states[0].numpy().mean(0), rtol=1e-3, atol=1e-3)

    def converted(self, model):
        """There and back again, the weights are the same to the last bit."""
        there, back = (str(self.folder / name) for name in ("there", "back"))
        try:
            lost = convert(model, there, "hf")["left_over"]
        except (ConfigError, DataError):  # The format does not have all networks and settings.
            return
        convert(there, back)
        before, after = (
            {
                getattr(v, "path", v.name): v.numpy()
                for v in xlnet.load_pretrainer(path).trainable_variables
            }
            for path in (model, back)
        )
        assert len(before.keys() - after.keys()) <= len(lost)
        # Rows of padding are never predicted.
        for name in after.keys() - {"lm_head/bias:0", "lm_head/bias"}:
            np.testing.assert_array_equal(after[name], before[name], name)

    def task(self, model):
        """A language model to a task's model; predictions, metrics and the export agree."""
        kind, files = self.values["task.name"], self.world.files(self.values["task.name"])
        more = {"task.query_length": 7} if kind == "question_answering" else {}
        config, tuned = self.config("task", "training", **more), str(self.folder / "tuned")
        start = {"task": kind, "config": config, "init_from": model}
        found = command("finetune", output=tuned, **start, **files)
        again = command("evaluate", model=tuned, data=files["dev"])
        for name in set(again) & set(found) - {"pearson", "spearman"}:  # Of nearly equal scores.
            if isinstance(again[name], float):
                assert again[name] == pytest.approx(found[name], rel=2e-3, abs=2e-3), name
        output = self.folder / "predictions.jsonl"
        command("predict", model=tuned, input=files["dev"], output=output)
        rows = [json.loads(line) for line in output.read_text().splitlines()]
        wanted = pathlib.Path(tuned, "predictions.jsonl").read_text().splitlines()
        assert [row["id"] for row in rows] == [json.loads(line)["id"] for line in wanted]
        if kind in ("classification", "regression"):
            self.served(tuned, files["dev"], rows)

    def served(self, tuned, dev, rows):
        import tensorflow_text  # noqa: F401  The graph has its operations.

        path = str(self.folder / "export")
        command("export", model=tuned, output=path)
        served = tf.saved_model.load(f"{path}/1").signatures["serving_default"]
        lines = [line.split("\t")[1:] for line in pathlib.Path(dev).read_text().splitlines()]
        texts = dict(zip(lines[0], zip(*lines[1:], strict=True), strict=True))
        answers = served(**{name: tf.constant(column) for name, column in texts.items()})
        if "score" in answers:
            wanted = [row["score"] for row in rows]
            np.testing.assert_allclose(answers["score"], wanted, rtol=2e-3, atol=2e-3)
        else:
            wanted = [list(row["probabilities"].values()) for row in rows]
            np.testing.assert_allclose(answers["probabilities"], wanted, rtol=2e-3, atol=2e-3)


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(NUM_JOURNEYS))
def test_journey(number, world, tmp_path):
    journey = Journey(journeys(NUM_JOURNEYS)[number], world, tmp_path)
    try:
        journey.task(journey.language())
    finally:
        keras.mixed_precision.set_global_policy("float32")
