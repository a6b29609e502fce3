"""Configuration: one typed tree that every command reads and every model directory keeps.

The tree is a `hyperparams.Config` of tf-models-official with five sections:

* `model`: the network (reference: section 2 and table 7 of the paper);
* `data`: how text becomes windows and which of their tokens are targets;
* `objective`: what is predicted of them, and from what;
* `training`: batch, optimizer, schedule and run control;
* `task`: what a fine-tuned model does; `task.name` is empty in a pre-trained one.

An unknown key is an error that names the nearest known one.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import difflib
import os
from typing import Any

import yaml

from official.modeling import hyperparams

CONFIG_FILE = "config.yaml"


class ConfigError(ValueError):
    """A configuration that cannot work: says which key, what was expected and what came."""


@dataclasses.dataclass
class ModelConfig(hyperparams.Config):
    """The network.

    Attributes:
      vocab_size: number of word pieces V.
      num_layers: number of blocks L.
      d_model: width D of the hidden states.
      num_heads: number of attention heads N; the head width is H = D / N.
      d_inner: width F between the two feed-forward matrices.
      activation: `gelu` (tanh form, as in the paper's code), `gelu_exact` (erf form) or `relu`.
      untie_r: whether every layer has its own r_w, r_r and r_s biases.
      attention_type: `bi`, or `uni` where no position attends to a later one.
      clamp_len: relative distances are clamped to ±clamp_len; 0 leaves them alone.
      mem_len: number M of hidden states kept from earlier windows; 0 switches memory off.
      dropout: rate after embeddings, projections and feed-forward matrices.
      dropatt: rate on attention probabilities.
      init_std: standard deviation of the normal initializer.
      recompute: what the backward pass computes again instead of keeping in memory:
        `none`, `attention` (scores and probabilities) or `block` (whole layers).
    """

    vocab_size: int = 32000
    num_layers: int = 12
    d_model: int = 768
    num_heads: int = 12
    d_inner: int = 3072
    activation: str = "gelu"
    untie_r: bool = True
    attention_type: str = "bi"
    clamp_len: int = 0
    mem_len: int = 384
    dropout: float = 0.1
    dropatt: float = 0.1
    init_std: float = 0.02
    recompute: str = "none"

    @property
    def d_head(self) -> int:
        """Width H of one attention head."""
        return self.d_model // self.num_heads


@dataclasses.dataclass
class DataConfig(hyperparams.Config):
    """Windows and targets.

    Attributes:
      seq_len: tokens T of a window.
      reuse_len: tokens by which windows advance, and that enter the memory.
      num_predict: targets P of a window.
      target_ratio: the paper's K: one token in K is predicted.
      target_unit: `word` draws spans of whole words, `token` of single pieces.
      max_span: longest span, in units.
      phrases: phrases that count as one word, such as `New York`.
      num_lanes: record shards (lanes) of a data set; half of them are reversed text.
      bidirectional: whether half of the lanes hold reversed text.
      heldout_fraction: share of documents kept out of training.
      lowercase: whether text is lower-cased before it is cut into pieces.
      keep_accents: whether accents are kept.
      seed: seed of everything random in the records.
    """

    seq_len: int = 512
    reuse_len: int = 256
    num_predict: int = 85
    target_ratio: float = 6.0
    target_unit: str = "word"
    max_span: int = 5
    phrases: tuple[str, ...] = ()
    num_lanes: int = 16
    bidirectional: bool = True
    heldout_fraction: float = 0.05
    lowercase: bool = False
    keep_accents: bool = False
    seed: int = 0


@dataclasses.dataclass
class ObjectiveConfig(hyperparams.Config):
    """What pre-training predicts; see `objectives`.

    Attributes:
      kind: `permutation` (XLNet), `denoising` (BERT) or `causal` (GPT, Transformer-XL).
      target_draws: how many draws of targets a window has, taken in turn by epoch: 1 is a static
        mask, BERT has 10; 0 draws anew in every epoch.
      mask_share: of `denoising`: probability that a target becomes `<mask>`.
      random_share: of `denoising`: probability that a target becomes any other piece.
      next_sentence: whether CLS also predicts if B follows A.
    """

    kind: str = "permutation"
    target_draws: int = 0
    mask_share: float = 0.8
    random_share: float = 0.1
    next_sentence: bool = False


@dataclasses.dataclass
class TrainingConfig(hyperparams.Config):
    """Batch, optimizer, schedule and run control.

    Attributes:
      batch_size: windows in a step, over all replicas.
      num_steps: steps of the schedule.
      learning_rate: peak learning rate.
      warmup_steps: steps of linear warm-up from 0.
      end_learning_rate: learning rate at `num_steps`.
      decay_power: power of the polynomial decay; 1 is linear.
      weight_decay: decoupled weight decay; not for biases and layer norm.
      adam_beta_1: decay of the first moment.
      adam_beta_2: decay of the second moment.
      adam_epsilon: added to the root of the second moment.
      clip_norm: global gradient norm above which gradients are scaled down; 0 switches it off.
      layer_decay: factor between the learning rates of one layer and the layer below it.
      accumulate_steps: slices of a batch that are computed one after the other before an update.
      parallel_slices: slices of a batch, or of such a slice, that are computed side by side, each
        on CPU cores of its own; faster for small networks.
      release_memory: whether the memory of tensors that are no longer needed goes back to the
        system at once, on a CPU; a lower peak, for a step that may take twice as long.
      precision: `float32` or `mixed_bfloat16`.
      jit_compile: whether XLA compiles the whole step.
      steps_per_execution: steps run between two returns to Python.
      checkpoint_steps: steps between two checkpoints.
      keep_checkpoints: newest checkpoints to keep, besides that of the lowest held-out loss.
      evaluation_steps: steps between two evaluations on the held-out lanes; 0: none.
      on_bad_step: what follows a loss or gradient that is not finite, which changes no weight:
        `stop`, or `skip` to go on with the next windows.
      json_log: whether the figures for TensorBoard also go to `logs/scalars.jsonl`.
      seed: seed of initial weights, targets, orders and dropout.
    """

    batch_size: int = 16
    num_steps: int = 10000
    learning_rate: float = 1e-4
    warmup_steps: int = 1000
    end_learning_rate: float = 0.0
    decay_power: float = 1.0
    weight_decay: float = 0.01
    adam_beta_1: float = 0.9
    adam_beta_2: float = 0.999
    adam_epsilon: float = 1e-6
    clip_norm: float = 1.0
    layer_decay: float = 1.0
    accumulate_steps: int = 1
    parallel_slices: int = 1
    release_memory: bool = False
    precision: str = "float32"
    jit_compile: bool = False
    steps_per_execution: int = 1
    checkpoint_steps: int = 500
    keep_checkpoints: int = 2
    evaluation_steps: int = 0
    on_bad_step: str = "stop"
    json_log: bool = False
    seed: int = 0

    def in_one_piece(self, batch_size: int) -> TrainingConfig:
        """The same with batches of another size, which nothing slices: no gradient is computed."""
        return dataclasses.replace(
            self, batch_size=batch_size, accumulate_steps=1, parallel_slices=1
        )


@dataclasses.dataclass
class TaskConfig(hyperparams.Config):
    """What a model is fine-tuned for.

    Attributes:
      name: kind of task, e.g. `classification`; empty in a model that was only pre-trained.
      labels: names of the classes, in the order of the logits; empty: those of the training file.
      scope: name of the data set in the TF1 release's names of variables, e.g. `mnli`.
      subtasks: of `multitask`: `NAME` of data sets, in the order of the heads.
      columns: names of the columns of a table that has no header.
      text_columns: columns that hold the texts, each its own segment; empty: all but the label.
      label_column: column that holds the label.
      max_length: tokens T of an input; longer texts are cut.
      truncation_side: the end that a text which is too long loses: `right` or `left`.
      num_buckets: lengths that short inputs are padded to: T, T/2, T/4, …
      summary: which vector stands for an input: `last` (CLS), `first`, `mean` or `attn`.
      metric: figure by which the best checkpoint is chosen; empty: the task's own.
      patience: evaluations without a better figure after which to stop; 0 never stops.
      class_weights: `none`, or `balanced`: every class counts the same in the loss.
      epochs: passes over the training data; 0: `training.num_steps` counts.
      freeze_encoder: whether only the head is trained.
      long_texts: `truncate`, `windows` (pooled) or `memory` (read left to right).
      window_stride: tokens by which the windows of a long text or paragraph advance.
      max_windows: windows that are read of a long text.
      pooling: how the windows of a long text are pooled: `mean` or `max`.
      query_length: tokens of a question, or of a query, that are read.
      answer_length: tokens of the longest answer.
      start_n_top: starts of answers that are tried.
      end_n_top: ends that are tried for each start.
      n_best: answers listed in a prediction.
      null_threshold: log odds of "no answer" above which that is the answer.
      num_choices: options of a multiple-choice question.
      scoring: of `ranking`: `kernel` (pooling of similarities) or `summary` (read together).
      cutoff: k of NDCG@k and ERR@k.
    """

    name: str = ""
    labels: tuple[str, ...] = ()
    scope: str = ""
    subtasks: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    text_columns: tuple[str, ...] = ()
    label_column: str = "label"
    max_length: int = 128
    truncation_side: str = "right"
    num_buckets: int = 3
    summary: str = "last"
    metric: str = ""
    patience: int = 0
    class_weights: str = "none"
    epochs: float = 0.0
    freeze_encoder: bool = False
    long_texts: str = "truncate"
    window_stride: int = 64
    max_windows: int = 4
    pooling: str = "mean"
    query_length: int = 64
    answer_length: int = 64
    start_n_top: int = 5
    end_n_top: int = 5
    n_best: int = 20
    null_threshold: float = 0.0
    num_choices: int = 4
    scoring: str = "kernel"
    cutoff: int = 20


@dataclasses.dataclass
class XLNetConfig(hyperparams.Config):
    """The whole tree; each section has a class of its own.

    Example:
      >>> config = XLNetConfig.load("configs/tiny.yaml", overrides=["model.mem_len=0"])
      >>> config.model.d_head
      32
    """

    model: ModelConfig = dataclasses.field(default_factory=ModelConfig)
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    objective: ObjectiveConfig = dataclasses.field(default_factory=ObjectiveConfig)
    training: TrainingConfig = dataclasses.field(default_factory=TrainingConfig)
    task: TaskConfig = dataclasses.field(default_factory=TaskConfig)

    @classmethod
    def load(
        cls,
        path: str,
        overrides: list[str] | tuple[str, ...] = (),
        base: XLNetConfig | None = None,
    ) -> XLNetConfig:
        """Reads a YAML file, or the one in a model directory, and validates it.

        Args:
          path: a YAML file or a directory that holds `config.yaml`.
          overrides: `key=value` strings; a key is `section.name` or, where only one section
            has it, `name`. Values are YAML.
          base: values of the keys that the file does not have; by default the defaults.

        Raises:
          ConfigError: the file is missing or no YAML mapping, a key is unknown, or the values
            cannot work together.
        """
        if os.path.isdir(path):
            path = os.path.join(path, CONFIG_FILE)
        if not os.path.isfile(path):
            raise ConfigError(
                f"no configuration at {path!r}: expected a YAML file or a model directory"
            )
        try:
            with open(path, encoding="utf-8") as file:
                tree = yaml.safe_load(file) or {}
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not valid YAML: {error}") from None
        if not isinstance(tree, dict):
            raise ConfigError(f"{path}: expected a mapping of sections, got {type(tree).__name__}")
        config = cls.from_dict(tree, source=path, base=base)
        for override in overrides:
            config.set(override)
        config.check()
        return config

    @classmethod
    def from_dict(
        cls, tree: dict[str, Any], source: str = "config", base: XLNetConfig | None = None
    ) -> XLNetConfig:
        """Builds a tree from nested dictionaries; unknown keys and wrong types are errors."""
        config = cls() if base is None else copy.deepcopy(base)
        sections = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
        for name, values in tree.items():
            if name not in sections:
                raise ConfigError(f"{source}: unknown key {name!r}{_nearest(name, sections)}")
            if not isinstance(values, dict):
                raise ConfigError(f"{source}: {name}: expected a mapping, got {values!r}")
            for key, value in values.items():
                _assign(sections[name], name, key, value, source)
        return config

    def set(self, override: str) -> None:
        """Applies one `key=value` override (see `load`)."""
        key, equals, text = override.partition("=")
        if not equals:
            raise ConfigError(f"--set={override}: expected key=value")
        sections = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if "." in key:
            section, key = key.split(".", 1)
            if section not in sections:
                raise ConfigError(
                    f"--set={override}: unknown section {section!r}{_nearest(section, sections)}"
                )
        else:
            owners = [name for name, value in sections.items() if key in value.as_dict()]
            if len(owners) > 1:
                raise ConfigError(f"--set={override}: say one of {[f'{o}.{key}' for o in owners]}")
            known = [known for value in sections.values() for known in value.as_dict()]
            if not owners:
                raise ConfigError(f"--set={override}: unknown key {key!r}{_nearest(key, known)}")
            section = owners[0]
        _assign(sections[section], section, key, yaml.safe_load(text), f"--set={override}")

    def check(self) -> None:
        """Raises `ConfigError` where values cannot work together."""
        m, d, o, t = self.model, self.data, self.objective, self.training
        _require(m.vocab_size > 9, "model.vocab_size", "more than the 9 special ids", m.vocab_size)
        for key in ("num_layers", "d_model", "num_heads", "d_inner"):
            _require(getattr(m, key) > 0, f"model.{key}", "at least 1", getattr(m, key))
        _require(
            m.d_model % m.num_heads == 0,
            "model.num_heads",
            f"a divisor of d_model = {m.d_model}",
            m.num_heads,
        )
        _require(m.d_model % 2 == 0, "model.d_model", "an even number", m.d_model)
        _one_of("model.activation", m.activation, ("gelu", "gelu_exact", "relu"))
        _one_of("model.attention_type", m.attention_type, ("bi", "uni"))
        _one_of("model.recompute", m.recompute, ("none", "attention", "block"))
        for key in ("dropout", "dropatt"):
            _require(0 <= getattr(m, key) < 1, f"model.{key}", "in [0, 1)", getattr(m, key))
        _require(m.mem_len >= 0, "model.mem_len", "0 or more", m.mem_len)
        _require(m.clamp_len >= 0, "model.clamp_len", "0 or more", m.clamp_len)
        _require(
            0 <= d.reuse_len < d.seq_len - 3,
            "data.reuse_len",
            f"below seq_len - 3 = {d.seq_len - 3} (a window also needs A, B, two SEP and CLS)",
            d.reuse_len,
        )
        _require(
            0 < d.num_predict <= d.seq_len - 3,
            "data.num_predict",
            f"from 1 to seq_len - 3 = {d.seq_len - 3} (SEP and CLS are never targets)",
            d.num_predict,
        )
        _require(d.target_ratio >= 1, "data.target_ratio", "at least 1", d.target_ratio)
        _one_of("data.target_unit", d.target_unit, ("word", "token"))
        _require(d.max_span >= 1, "data.max_span", "at least 1", d.max_span)
        _require(
            not d.phrases or d.target_unit == "word",
            "data.target_unit",
            "word with data.phrases",
            d.target_unit,
        )
        _one_of("objective.kind", o.kind, ("permutation", "denoising", "causal"))
        _require(o.target_draws >= 0, "objective.target_draws", "0 or more", o.target_draws)
        _require(
            o.mask_share >= 0 and o.random_share >= 0 and o.mask_share + o.random_share <= 1,
            "objective.mask_share and random_share",
            "shares from 0 to 1, and at most 1 together",
            (o.mask_share, o.random_share),
        )
        _require(
            not (o.next_sentence and o.kind == "causal"),
            "objective.next_sentence",
            "false with objective.kind=causal, which does not read B",
            o.next_sentence,
        )
        _require(d.num_lanes >= 1, "data.num_lanes", "at least 1", d.num_lanes)
        _require(
            not d.bidirectional or d.num_lanes % 2 == 0,
            "data.num_lanes",
            "an even number with bidirectional data",
            d.num_lanes,
        )
        _require(
            0 <= d.heldout_fraction < 1, "data.heldout_fraction", "in [0, 1)", d.heldout_fraction
        )
        _require(t.batch_size >= 1, "training.batch_size", "at least 1", t.batch_size)
        slices = t.accumulate_steps, t.parallel_slices
        _require(
            min(slices) >= 1 and t.batch_size % (slices[0] * slices[1]) == 0,
            "training.accumulate_steps and parallel_slices",
            f"together a divisor of batch_size = {t.batch_size}",
            slices,
        )
        _require(t.num_steps >= 1, "training.num_steps", "at least 1", t.num_steps)
        _require(
            0 <= t.warmup_steps <= t.num_steps,
            "training.warmup_steps",
            f"from 0 to num_steps = {t.num_steps}",
            t.warmup_steps,
        )
        _require(t.learning_rate > 0, "training.learning_rate", "above 0", t.learning_rate)
        for key in ("checkpoint_steps", "keep_checkpoints", "steps_per_execution"):
            _require(getattr(t, key) >= 1, f"training.{key}", "at least 1", getattr(t, key))
        _require(
            t.evaluation_steps >= 0, "training.evaluation_steps", "0 or more", t.evaluation_steps
        )
        _one_of("training.on_bad_step", t.on_bad_step, ("stop", "skip"))
        _one_of("training.precision", t.precision, ("float32", "mixed_bfloat16"))
        task = self.task
        for key, allowed in (
            ("summary", ("last", "first", "mean", "attn")),
            ("class_weights", ("none", "balanced")),
            ("truncation_side", ("right", "left")),
            ("long_texts", ("truncate", "windows", "memory")),
            ("pooling", ("mean", "max")),
            ("scoring", ("kernel", "summary")),
        ):
            _one_of(f"task.{key}", getattr(task, key), allowed)
        for key in (
            *("max_length", "num_buckets", "window_stride", "max_windows", "query_length"),
            *("answer_length", "start_n_top", "end_n_top", "n_best", "cutoff"),
        ):
            _require(getattr(task, key) > 0, f"task.{key}", "at least 1", getattr(task, key))
        _require(task.num_choices > 1, "task.num_choices", "at least 2", task.num_choices)
        _require(task.epochs >= 0, "task.epochs", "0 or more", task.epochs)
        _require(
            task.long_texts != "memory" or m.mem_len > 0,
            "model.mem_len",
            "at least 1 with task.long_texts=memory",
            m.mem_len,
        )

    def save(self, directory: str) -> None:
        """Writes `config.yaml` into a model directory, by a temporary name and a rename."""
        os.makedirs(directory, exist_ok=True)
        path = os.path.join(directory, CONFIG_FILE)
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            yaml.safe_dump(self.as_dict(), file, sort_keys=False)
        os.replace(path + ".tmp", path)


def _assign(section: hyperparams.Config, name: str, key: str, value: Any, source: str) -> None:
    fields = {field.name: field for field in dataclasses.fields(section)}
    if key not in fields:
        raise ConfigError(f"{source}: unknown key {name + '.' + key!r}{_nearest(key, fields)}")
    expected = type(fields[key].default)
    if expected is float and isinstance(value, int | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError):
            value = float(value)  # YAML reads 1e-4 as text.
    if expected is tuple and isinstance(value, list):
        if not all(isinstance(item, str | int | float) for item in value):
            raise ConfigError(f"{source}: {name}.{key}: expected a list of texts, got {value!r}")
        value = tuple(str(item) for item in value)
    if type(value) is not expected:
        raise ConfigError(f"{source}: {name}.{key}: expected {expected.__name__}, got {value!r}")
    setattr(section, key, value)


def _nearest(key: str, known: Any) -> str:
    matches = difflib.get_close_matches(key, list(known), n=1, cutoff=0.5)
    return f"; did you mean {matches[0]!r}?" if matches else f"; known keys: {', '.join(known)}"


def _require(condition: bool, key: str, expected: str, got: Any) -> None:
    if not condition:
        raise ConfigError(f"{key}: expected {expected}, got {got!r}")


def _one_of(key: str, value: str, allowed: tuple[str, ...]) -> None:
    _require(value in allowed, key, f"one of {', '.join(allowed)}", value)
