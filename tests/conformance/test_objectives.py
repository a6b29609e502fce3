"""Every objective, input format and auxiliary objective that is registered, also of extensions."""

import pytest
import tensorflow as tf

from official.xlnet import testing
from official.xlnet.configs.registry import AUXILIARY, INPUT_FORMATS, OBJECTIVES
from official.xlnet.errors import ConfigError

CONTIGUOUS = ["mem_len=0", "reuse_len=9", "num_predict=2"]  # Text of 9 tokens, of which 7 stay.
NEEDS = {}  # Settings that an objective needs, besides its name.
PARTS = [
    *((kind, NEEDS.get(kind, [])) for kind in OBJECTIVES.names()),
    *(("denoising", [*CONTIGUOUS, f"input_format={name}"]) for name in INPUT_FORMATS.names()[1:]),
    ("permutation", [f"auxiliary=[{', '.join(AUXILIARY.names())}]"]),
]


def check(kind, overrides, quick=False):
    try:
        testing.check_objective(kind, overrides, quick)
    except ConfigError as error:
        pytest.fail(f"{error}: write what {kind} {overrides} needs in NEEDS of test_objectives.py")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "overrides"), PARTS, ids=str)
def test_objective(kind, overrides):
    check(kind, overrides)


def test_an_objective_without_the_compiled_step():
    """Which takes longer than everything else."""
    testing.check_objective("permutation", ["jit_compile=false"])


@pytest.mark.parametrize(("kind", "overrides"), PARTS[1:], ids=str)
def test_objective_quickly(kind, overrides):
    check(kind, overrides, quick=True)


def predicts_what_it_reads(task):
    labels_BP = tf.gather(task.inputs["token_ids"], task.inputs["content_positions"], batch_dims=1)
    return task._replace(labels_BP=labels_BP)


def attends_to_everything(task):
    return task._replace(inputs={name: x for name, x in task.inputs.items() if name != "order"})


def shows_no_text(task):
    return task._replace(inputs={**task.inputs, "token_ids": 6 + 0 * task.inputs["token_ids"]})


def forgets_its_seed(task):
    is_kept_BP = tf.random.uniform(task.mask_BP.shape) < 0.8
    return task._replace(mask_BP=task.mask_BP * tf.cast(is_kept_BP, tf.float32))


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("causal", predicts_what_it_reads, "depends on its own token"),
        ("denoising", attends_to_everything, "the memory depends on a token of the next window"),
        ("permutation", shows_no_text, "depends on no token"),
        pytest.param("causal", forgets_its_seed, "saved and restored", marks=pytest.mark.slow),
        ("causal", lambda task: task._replace(mask_BP=0 * task.mask_BP), "there is no gradient"),
        ("causal", lambda task: task._replace(mask_BP=task.mask_BP / 0), "gradient is not finite"),
    ],
)
def test_a_wrong_objective_is_refused(monkeypatch, kind, change, message):
    create = OBJECTIVES[kind]
    wrong = lambda config: lambda batch: change(create(config)(batch))  # noqa: E731
    monkeypatch.setitem(OBJECTIVES, "wrong", wrong)
    with pytest.raises(AssertionError, match=message):
        testing.check_objective("wrong", ["jit_compile=false"])
