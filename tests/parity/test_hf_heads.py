"""Each head against HF's corresponding one, on copied random weights, losses included."""

import types

import numpy as np
import pytest
import tensorflow as tf

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel  # noqa: E402
from tests.helpers.tiny import VOCAB  # noqa: E402
from tests.parity.hf_weights import as_ours, our_config, pairs  # noqa: E402

pytestmark = pytest.mark.slow
U, T = 3, 11


def assign(layer, linear):
    layer.kernel.assign(linear.weight.detach().numpy().T)
    if linear.bias is not None:
        layer.bias.assign(linear.bias.detach().numpy())


def pair(hf_class, task, summary_type="last", **hf_settings):
    """HF's model and ours, with the same random weights in the encoder."""
    config = transformers.XLNetConfig(
        vocab_size=VOCAB,
        d_model=26,
        n_layer=2,
        n_head=2,
        d_inner=29,
        ff_activation="gelu_new",
        dropout=0.0,
        mem_len=None,
        untie_r=True,
        bi_data=False,
        clamp_len=-1,
        summary_type=summary_type,
        summary_last_dropout=0.0,
        **hf_settings,
    )
    theirs = hf_class(config).eval()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.2)
    ours_config = our_config(config)
    settings = {"num_buckets": 1, "summary": summary_type, **task}
    ours_config.task = ours_config.task.updated(settings, "")
    ours = XLNetTaskModel(ours_config)
    no_bias = types.SimpleNamespace(bias=None)
    hf = types.SimpleNamespace(transformer=theirs.transformer, lm_loss=no_bias)
    encoder = types.SimpleNamespace(encoder=ours.encoder, lm_head=no_bias)
    for _, variable, parameter, transposed in pairs(hf, encoder):
        if variable is not None:
            variable.assign(as_ours(parameter, variable, transposed))
    return theirs, ours


def inputs(sequences=1, seed=0):
    rng = np.random.default_rng(seed)
    is_padding = np.zeros((U, sequences, T), bool)
    for row in is_padding.reshape(-1, T)[1:]:
        row[: rng.integers(0, 4)] = True
    return {
        "token_ids": rng.integers(9, VOCAB, (U, sequences, T)).astype(np.int32),
        "segment_ids": np.sort(rng.integers(0, 3, (U, sequences, T))).astype(np.int32),
        "is_padding": is_padding,
    }


def torch_inputs(batch, merge=True):
    shape = (-1, T) if merge else (U, -1, T)
    return {
        "input_ids": torch.tensor(batch["token_ids"].reshape(shape)).long(),
        "token_type_ids": torch.tensor(batch["segment_ids"].reshape(shape)).long(),
        "attention_mask": torch.tensor(1.0 - batch["is_padding"].reshape(shape)).float(),
    }


def check(ours, theirs):
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=2e-4, atol=2e-5)


def mean_loss(model, outputs, labels):
    labels = {"weight": tf.ones([U]), **labels}
    loss_U, items_U = model.head.loss(outputs, labels), model.head.num_items(labels)
    return tf.reduce_sum(loss_U) / tf.reduce_sum(items_U)


SEQUENCE = transformers.XLNetForSequenceClassification
CHOICE = transformers.XLNetForMultipleChoice
FIVE = {"labels": tuple("abcde")}
# kind, HF's class, its settings, ours, sequences of an example
SUMMARIZED = {
    "classes": ("classification", SEQUENCE, {"num_labels": 5}, FIVE, 1),
    "first": ("classification", SEQUENCE, {"num_labels": 5, "summary_type": "first"}, FIVE, 1),
    "mean": ("classification", SEQUENCE, {"num_labels": 5, "summary_type": "mean"}, FIVE, 1),
    "multi_label": (
        "multi_label",
        SEQUENCE,
        {"num_labels": 5, "problem_type": "multi_label_classification"},
        FIVE,
        1,
    ),
    "regression": ("regression", SEQUENCE, {"num_labels": 1}, {}, 1),
    "multiple_choice": ("multiple_choice", CHOICE, {}, {"num_choices": 5}, 5),
}


@pytest.mark.parametrize("name", SUMMARIZED)
def test_heads_with_a_summary(name):
    kind, hf_class, settings, task, sequences = SUMMARIZED[name]
    theirs, ours = pair(hf_class, {"name": kind, **task}, **settings)
    assign(ours.head.summary.projection, theirs.sequence_summary.summary)
    assign(ours.head.logits, theirs.logits_proj)
    batch = inputs(sequences)
    if "summary_type" in settings:  # HF takes the summary of padding, too.
        batch["is_padding"][:] = False
    rng = np.random.default_rng(1)
    label = {
        "multi_label": rng.integers(0, 2, (U, 5)).astype(np.float32),
        "regression": rng.normal(size=U).astype(np.float32),
    }.get(kind, np.array([4, 0, 2], np.int32))
    labels = torch.tensor(label if label.dtype == np.float32 else label.astype(np.int64))
    expected = theirs(**torch_inputs(batch, merge=sequences == 1), labels=labels)
    outputs = ours(batch)
    check(outputs["logits"], expected.logits)
    check(mean_loss(ours, outputs, {"label": label}), expected.loss)


def test_token_classification():
    theirs, ours = pair(
        transformers.XLNetForTokenClassification,
        {"name": "token_classification", "labels": tuple("abcdefg")},
        num_labels=7,
    )
    assign(ours.head.logits, theirs.classifier)
    batch = inputs()
    tags = np.random.default_rng(2).integers(-1, 7, (U, 1, T)).astype(np.int32)
    tags[batch["is_padding"]] = -1
    expected = theirs(
        **torch_inputs(batch),
        labels=torch.tensor(np.where(tags[:, 0] < 0, -100, tags[:, 0])).long(),
    )
    outputs = ours(batch)
    real = ~batch["is_padding"][:, 0]
    check(outputs["logits"].numpy()[real], expected.logits[torch.tensor(real)])
    check(mean_loss(ours, outputs, {"tags": tags}), expected.loss)


@pytest.fixture(scope="module")
def question_answering():
    theirs, ours = pair(
        transformers.XLNetForQuestionAnswering,
        {"name": "question_answering", "start_n_top": 3, "end_n_top": T, "answer_length": T},
        start_n_top=3,
        end_n_top=T,
        layer_norm_eps=1e-12,
    )
    head = ours.head
    assign(head.start_logits, theirs.start_logits.dense)
    assign(head.end_hidden, theirs.end_logits.dense_0)
    head.end_norm.gamma.assign(theirs.end_logits.LayerNorm.weight.detach().numpy())
    head.end_norm.beta.assign(theirs.end_logits.LayerNorm.bias.detach().numpy())
    assign(head.end_logits, theirs.end_logits.dense_1)
    assign(head.answer_hidden, theirs.answer_class.dense_0)
    assign(head.answer_logits, theirs.answer_class.dense_1)
    batch = inputs()
    can_answer = ~batch["is_padding"]
    can_answer[:, :, 7:] = False
    batch |= {"can_answer": can_answer, "may_start": can_answer}
    p_mask = (~can_answer[:, 0]).astype(np.float32)
    p_mask[:, -1] = 0  # CLS may be chosen: it is "no answer".
    return theirs, ours, batch, torch.tensor(p_mask)


def test_question_answering_losses(question_answering):
    theirs, ours, batch, p_mask = question_answering
    start, end = np.array([4, 5, 10], np.int32), np.array([6, 5, 10], np.int32)
    is_impossible = np.array([0, 0, 1], np.float32)
    labels = {"start": T - 1 - start, "end": T - 1 - end, "is_impossible": is_impossible}
    outputs = ours({**batch, **labels})
    span = theirs(
        **torch_inputs(batch),
        p_mask=p_mask,
        start_positions=torch.tensor(start).long(),
        end_positions=torch.tensor(end).long(),
    )
    # HF trains answerability on the right start's vector, the release (as we do) on the
    # softmax-weighted one, which HF uses for prediction: its logits come from there.
    predicted = theirs(**torch_inputs(batch), p_mask=p_mask)
    answer_loss = torch.nn.BCEWithLogitsLoss()(predicted.cls_logits, torch.tensor(is_impossible))
    check(mean_loss(ours, outputs, labels), span.loss + 0.5 * answer_loss)


def test_simple_question_answering():
    """Logits, and the loss where every token is open, without padding: HF's has all of them."""
    theirs, ours = pair(
        transformers.XLNetForQuestionAnsweringSimple, {"name": "question_answering_simple"}
    )
    assign(ours.head.span_logits, theirs.qa_outputs)
    batch = inputs()
    batch["is_padding"][:] = False
    can_answer = np.ones_like(batch["is_padding"])
    start, end = np.array([4, 5, 10], np.int32), np.array([6, 5, 10], np.int32)
    labels = {"start": T - 1 - start, "end": T - 1 - end, "is_impossible": np.zeros(U, np.float32)}
    outputs = ours({**batch, "can_answer": can_answer, "may_start": can_answer, **labels})
    expected = theirs(
        **torch_inputs(batch),
        start_positions=torch.tensor(start).long(),
        end_positions=torch.tensor(end).long(),
    )
    for name in ("start_logits", "end_logits"):
        check(outputs[name], getattr(expected, name))
    check(mean_loss(ours, outputs, labels), expected.loss)
