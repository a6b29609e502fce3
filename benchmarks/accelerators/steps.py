"""Our steps, and a peer's, as StableHLO, with the forms of a TPU or of another kind of device."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from benchmarks.accelerators.chips import Chip
from benchmarks.costs import flops
from benchmarks.harness.workload import Shape, tokens_and_segments
from benchmarks.training import ours
from benchmarks.training.peers import tfm
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.files.json_files import write_json
from official.xlnet.modeling.kernels.device_forms import built_for
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.modeling.ops.keras import global_policy

MODULE, DESCRIPTION = "step.mlir", "step.json"
KINDS = ("pretrain", "classify", "answer", "serve")
PEER = "tf-models"  # The kind of the legacy XLNet of tf-models-official: its pre-training step.


@dataclasses.dataclass(frozen=True)
class Case:
    """A step to compile.

    Attributes:
      config: path of a recipe; gives the model.
      kind: one of `KINDS`, the pre-training step, the fine-tuning step for classification or for
        question answering, or the network that is served; or `PEER`.
      batch_size: rows B on one device.
      seq_len: tokens T; 0 for those of the recipe.
      settings: `key=value` settings of the recipe.
      device: the kind of device whose forms operations have.
      replicas: devices that sum their gradients; `pretrain` only.
    """

    config: str
    kind: str
    batch_size: int
    seq_len: int = 0
    settings: tuple[str, ...] = ()
    device: str = "TPU"
    replicas: int = 1

    def load(self) -> XLNetConfig:
        """The configuration of one device."""
        config = XLNetConfig.load(self.config)
        config.training.batch_size = self.batch_size
        for setting in self.settings:
            config.set(setting)
        config.check()
        return config

    def shape(self) -> Shape:
        """The sizes of the model and its batch; fine-tuning and serving have no memory here."""
        config = self.load()
        model, data = config.model, config.data
        trains_lm = self.kind in ("pretrain", PEER)
        return Shape(
            num_layers=model.num_layers,
            d_model=model.d_model,
            num_heads=model.num_heads,
            d_inner=model.d_inner,
            vocab_size=model.vocab_size,
            seq_len=self.seq_len or data.seq_len,
            mem_len=model.mem_len if trains_lm else 0,
            reuse_len=data.reuse_len,
            num_predict=data.num_predict if trains_lm else 0,
            batch_size=self.batch_size,
        )

    def flops(self) -> int:
        """Operations of its matrix products, counted by formula; heads of tasks are left out."""
        with built_for(self.device):
            return flops.total(flops.computed(self.shape(), self.kind != "serve"))


@dataclasses.dataclass(frozen=True)
class Family:
    """Cases that differ in the batch size.

    Attributes:
      config, kind, seq_len: of `Case`.
      batch_sizes: those of the table.
    """

    config: str
    kind: str
    seq_len: int
    batch_sizes: tuple[int, ...]

    def case(self, batch_size: int, chip: Chip, settings: tuple[str, ...] = ()) -> Case:
        """The case of a batch size, with the forms of a chip.

        Ours trains in the 16-bit type of the chip; served networks are in float32, and so is the
        peer, which raises with other types.
        """
        precision = "float32" if self.kind in ("serve", PEER) else chip.precision
        settings = (f"training.precision={precision}", *settings)
        return Case(
            self.config,
            self.kind,
            batch_size,
            self.seq_len,
            settings,
            chip.kind,
            chip.replicas,
        )


def _families(model: str) -> dict[str, Family]:
    config = f"configs/{model}.yaml"
    sizes = 8, 16, 32, 64
    return {
        model: Family(config, "pretrain", 0, sizes),
        f"{model}-classify-64": Family(config, "classify", 64, (64, 128, 256)),
        f"{model}-classify-128": Family(config, "classify", 128, (32, 64, 128)),
        f"{model}-classify-256": Family(config, "classify", 256, (16, 32, 64)),
        f"{model}-classify-512": Family(config, "classify", 512, sizes),
        f"{model}-squad-512": Family(config, "answer", 512, sizes),
        f"{model}-serve-512": Family(config, "serve", 512, sizes),
        f"{PEER}-{model}": Family(config, PEER, 0, sizes),
    }


STEPS = _families("base") | _families("large")


class Step(NamedTuple):
    """A traced step.

    Attributes:
      concrete: the concrete function.
      module: its StableHLO.
      batch: its arguments, flat, as the module takes them.
      state: the variables that the module takes after them, and constants of a peer.
    """

    concrete: tf.types.experimental.ConcreteFunction
    module: bytes
    batch: list[tf.Tensor]
    state: list[tf.Variable | tf.Tensor]


def trace(case: Case) -> Step:
    """Traces a step and lowers it to StableHLO."""
    config, shape = case.load(), case.shape()
    variables: list[tf.Variable] = []
    with built_for(case.device), global_policy(config.training.precision):
        if case.kind == "serve":
            encoder = XLNetEncoder(config)
            encoder.build()
            function = ours.server(encoder, shape)
            arguments = [tf.constant(x) for x in tokens_and_segments(shape)]
        elif case.kind == PEER:
            model, optimizer, function, batch = tfm.trainer(shape)
            arguments = [batch]
        else:
            if case.kind == "pretrain":
                model, batch = ours.pretrainer(shape, config)
                if case.replicas > 1:
                    _sum_gradients(model, case.replicas)
            else:
                model, batch = ours.finetuner(shape, config, case.kind)
            function, arguments = model.train_step, [batch]
            variables += model.optimizer.variables
        step = tf.function(function, jit_compile=True, autograph=False)
        concrete = step.get_concrete_function(*arguments)
        module = step.experimental_get_compiler_ir(*arguments)(stage="stablehlo_serialized")
    variables += concrete.variables
    if case.kind == PEER:
        variables += optimizer.variables()
    by_handle = {id(variable.handle): variable for variable in variables}
    state = [by_handle.get(id(captured), captured) for captured in concrete.captured_inputs]
    return Step(concrete, module, tf.nest.flatten(arguments), state)


def _sum_gradients(model, replicas: int) -> None:
    """Makes a step sum its gradients over replicas, as the strategy of a TPU does."""
    update, everyone = model.update, [list(range(replicas))]

    def update_with_sums(gradients):
        sums = [
            gen_xla_ops.xla_all_reduce(gradient, everyone, reduce_op="Add", mode="CrossReplica")
            for gradient in gradients
        ]
        return update(sums)

    model.update = update_with_sums


def write_step(case: Case, step: Step, folder: str) -> None:
    """Writes a step as StableHLO, `step.mlir`, with what it takes and returns, `step.json`.

    The description lists the parameters of the module in order: the batch, then the state. Which
    outputs are new values of which parameters stands in the module (`mhlo.input_output_alias`);
    the first `num_results` are the step's results.
    """
    os.makedirs(folder, exist_ok=True)
    pathlib.Path(folder, MODULE).write_bytes(step.module)
    description = {
        "case": dataclasses.asdict(case),
        "batch": [_spec(x) for x in step.batch],
        "state": [_spec(variable) for variable in step.state],
        "num_results": len(tf.nest.flatten(step.concrete.structured_outputs)),
        "tokens": case.shape().tokens,
        "flops": case.flops(),
        "replicas": case.replicas,
    }
    write_json(os.path.join(folder, DESCRIPTION), description)


def _spec(x: tf.Tensor | tf.Variable) -> dict[str, Any]:
    return {"dtype": tf.as_dtype(x.dtype).name, "shape": list(x.shape)}
