"""A vocabulary extended on the command line, and every verb that follows."""

import json

import pytest

from official import xlnet
from tests.helpers.corpora import domain_text
from tests.helpers.wrong_input import make_world, run

pytestmark = pytest.mark.slow

NEW = 19


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    world = make_world(tmp_path_factory.mktemp("world"))
    (world / "domain.txt").write_text(domain_text(), encoding="utf-8")
    return world


def test_from_the_domain_to_a_task(world, tmp_path, capfd):
    domain, extended = f"--input={world / 'domain.txt'}", tmp_path / "extended"
    model, task = tmp_path / "model", tmp_path / "task"
    results = {}
    verbs = {
        "vocab": [
            f"--extend={world / 'language'}",
            f"--size=+{NEW}",
            domain,
            f"--output={extended}",
        ],
        "prepare": [
            *(domain, f"--vocab={extended}", f"--config={extended}", "--num_workers=1"),
            f"--output={tmp_path / 'data'}",
        ],
        "pretrain": [
            *(f"--config={extended}", f"--init_from={extended}", f"--data={tmp_path / 'data'}"),
            f"--model_dir={model}",
        ],
        "evaluate": [f"--model={model}", f"--data={tmp_path / 'data'}"],
        "finetune": [
            *("--task=classification", f"--train={world / 'train.tsv'}"),
            *(f"--dev={world / 'dev.tsv'}", f"--init_from={model}", f"--output={task}"),
            *("--set=max_length=23", "--set=num_steps=2", "--set=warmup_steps=0"),
            "--set=num_buckets=1",
        ],
        "predict": [
            *(f"--model={task}", f"--input={world / 'dev.tsv'}"),
            f"--output={tmp_path / 'predictions.jsonl'}",
        ],
        "embed": [f"--model={model}", domain, f"--output={tmp_path / 'v.npy'}"],
        "score": [f"--model={model}", "--text=The tachycardia of the people."],
        "generate": [f"--model={model}", "--text=the tachycardia", "--num_tokens=2"],
        "export": [f"--model={task}", f"--output={tmp_path / 'exported'}", "--buckets=23"],
    }
    for verb, arguments in verbs.items():
        outcome = run(capfd, verb, *arguments)
        assert outcome.status == 0, (verb, outcome.err)
        results[verb] = outcome
    assert results["vocab"].result["vocab_size"] == 211 + NEW
    assert xlnet.load_config(str(task)).model.vocab_size == 211 + NEW
    assert results["prepare"].result["tokens"] < 1.1 * results["vocab"].result["tokens_after"]
    tokens = json.loads(results["score"].out.splitlines()[0])["tokens"]
    new = [xlnet.load_tokenizer(str(extended)).id_to_piece(211 + i) for i in range(NEW)]
    assert set(tokens) & set(new)


def test_records_of_the_old_vocabulary_are_refused(world, tmp_path, capfd):
    extended = tmp_path / "extended"
    extend = [f"--extend={world / 'language'}", "--size=+7", f"--input={world / 'domain.txt'}"]
    assert run(capfd, "vocab", *extend, f"--output={extended}").status == 0
    outcome = run(
        capfd,
        *("pretrain", f"--config={extended}", f"--init_from={extended}"),
        *(f"--data={world / 'data'}", f"--model_dir={tmp_path / 'model'}"),
    )
    assert outcome.status == 2 and "vocab" in outcome.err
