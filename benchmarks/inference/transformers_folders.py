"""Largest differences between transformers and this package, for each head and version.

    python -m benchmarks.inference.transformers_folders

measures what docs/transformers.json has, and fills the table of CONTRIBUTING.md. Transformers
5 runs in this environment, transformers 4 in that of `XLNET_HF4_PYTHON`. Both write a folder for
each head, by their defaults and with random weights, and compute with it what their users do.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from scipy import special

from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.tables import add_row, fill_table, markdown_table, read_rows

PAGE = "CONTRIBUTING.md"
RESULTS = "docs/transformers.json"
_KEY = ("version", "head", "direction", "call")
SCRIPT = pathlib.Path(__file__).parents[2] / "tests/real/transformers_folders.py"
PYTHONS = {"5": sys.executable, "4": os.environ.get("XLNET_HF4_PYTHON", "")}
SINGLE = [
    [
        "The water (may) find its way.",
        "now",
        '1,000 people, and zuzu.more of the [E1]them - well-known "<new> 3.5',
    ]
]
PAIRS = [["The water may find its way.", "now"], ["of the time", "(zuzu) and people[E1] there"]]
CHOICES = [["the people of the"] * 3, ["water", "now and then they", "find it there"]]
# Columns of texts of each kind of folder.
TEXTS = {
    "encoder": SINGLE,
    "lm": SINGLE,
    "classification": SINGLE,
    "pairs": PAIRS,
    "half": SINGLE,
    "multi_label": SINGLE,
    "regression": SINGLE,
    "token_classification": SINGLE,
    "multiple_choice": CHOICES,
    "question_answering": PAIRS,
    "simple_answers": PAIRS,
}
DIRECTIONS = ("here", "there", "back", "continued")
CALLS = ("pipeline", "model")
# Kinds of folders that `pipeline("text-classification")` takes.
PREDICTED = ("classification", "pairs", "half", "multi_label", "regression")
_NAMES = {
    "encoder": "`XLNetModel`",
    "lm": "`XLNetLMHeadModel`",
    "classification": "`XLNetForSequenceClassification`",
    "pairs": "the same, pairs of texts",
    "half": "the same, float16",
    "multi_label": "the same, multi-label",
    "regression": "the same, one label",
    "token_classification": "`XLNetForTokenClassification`",
    "multiple_choice": "`XLNetForMultipleChoice`",
    "question_answering": "`XLNetForQuestionAnswering`",
    "simple_answers": "`XLNetForQuestionAnsweringSimple`",
}
# A run that changes no weight.
_STILL = ("num_steps=1", "checkpoint_steps=1", "warmup_steps=0", "learning_rate=1e-30")
_OF_TASK = ("task.num_buckets=1", "task.max_length=64", "training.batch_size=2")

Answer = dict[str, Any]


def main() -> None:
    flags = parse(
        __doc__,
        versions=flag([*PYTHONS], "versions of transformers"),
        directions=flag([*DIRECTIONS], "directions to measure; the others stay as they are"),
    )
    from tests.helpers.corpora import vocabulary_dir  # Text that has all that tokenizers split.

    for version in flags.versions:
        with tempfile.TemporaryDirectory() as folder:
            found = compare(version, pathlib.Path(folder), vocabulary_dir(), flags.directions)
            for cell, value in found:
                row = dict(zip(_KEY, (version, *cell), strict=True))
                add_row(RESULTS, row | {"difference": value}, _KEY)
    write_table()


def write_table() -> None:
    """Fills the table of the page from the results on file."""
    rows = [["head", *(f"transformers {version}" for version in PYTHONS)]]
    on_file = read_rows(RESULTS)
    for kind, name in _NAMES.items():
        largest = (
            max(x["difference"] for x in on_file if (x["version"], x["head"]) == (version, kind))
            for version in PYTHONS
        )
        rows.append([name, *(f"{value:.0e}" for value in largest)])
    fill_table(PAGE, "transformers", markdown_table(rows))


def compare(
    version: str, folder: pathlib.Path, vocab: str, directions: Collection[str] = DIRECTIONS
) -> Iterator[tuple[tuple[str, str, str], float]]:
    """Yields the largest difference for each (kind of folder, direction, call).

    Args:
      version: major version of transformers.
      folder: an empty folder for what the programs write.
      vocab: directory of a vocabulary.
      directions: those to measure.
    """
    theirs = write_there(version, folder / "theirs", vocab)
    sources = {kind: f"{folder}/theirs/{kind}" for kind in TEXTS}
    ours: dict[str, str] = {}
    there: dict[str, Answer] = {}
    if {"there", "back"} & {*directions}:
        ours, returned = convert_there_and_back(sources, folder)
        there = run(version, folder / "read", models=returned)
    for kind, source in sources.items():
        for way in directions:
            if way == "here":
                pair = answer(source, kind), theirs[kind]
            elif way == "there":
                pair = there[kind], answer(ours[kind], kind)
            elif way == "back":
                pair = there[kind], theirs[kind]
            else:
                went_on = continue_run(kind, source, folder / f"{kind}_on")
                pair = answer(went_on, kind), theirs[kind]
            for call, value in differences(*pair).items():
                yield (kind, way, call), value


def run(version: str, folder: pathlib.Path, **job: Any) -> dict[str, Answer]:
    """What the script answers in an environment with a version of transformers."""
    folder.mkdir()
    job |= {"torch": sysconfig.get_path("purelib"), "output": str(folder), "texts": TEXTS}
    (folder / "job.json").write_text(json.dumps(job))
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [PYTHONS[version], SCRIPT, folder / "job.json"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "answer.json").read_text())


def write_there(version: str, folder: pathlib.Path, vocab: str) -> dict[str, Answer]:
    """Writes a folder of each kind with transformers; returns what it computes with them."""
    from official.xlnet.tokenization.tokenizer import num_pieces

    return run(version, folder, vocab=vocab, vocab_size=num_pieces(f"{vocab}/spiece.model"))


def convert_there_and_back(
    sources: dict[str, str], folder: pathlib.Path
) -> tuple[dict[str, str], dict[str, str]]:
    """(model directories, HF folders made from these) of HF folders."""
    from official import xlnet

    ours = {kind: f"{folder}/{kind}_ours" for kind in sources}
    returned = {kind: f"{folder}/{kind}_hf" for kind in sources}
    for kind, source in sources.items():
        left_over = xlnet.convert(source, ours[kind])["left_over"]
        assert left_over == [], f"{kind}: {left_over}"
        xlnet.convert(ours[kind], returned[kind], "hf")
    return ours, returned


def differences(found: Answer, expected: Answer) -> dict[str, float]:
    """The largest absolute difference, {call: value}."""
    values: dict[str, float] = {}
    for name in found.keys() & expected.keys() - {"info", "labels"}:
        ours, theirs = found[name], expected[name]
        if ours is None or theirs is None:
            continue
        if name == "answers":  # Beams may differ by starts that are not allowed.
            pairs = list(zip(ours, theirs, strict=True))
            assert all(a.keys() & b.keys() for a, b in pairs), pairs
            pairs = [(a[x], b[x]) for a, b in pairs for x in a.keys() & b.keys()]
            ours, theirs = zip(*pairs, strict=True)
        call = "pipeline" if name == "pipeline" else "model"
        ours, theirs = np.array(ours, np.float64), np.array(theirs, np.float64)
        assert ours.shape == theirs.shape, f"{name}: {ours.shape} {theirs.shape}"
        values[call] = max(values.get(call, 0.0), float(np.abs(ours - theirs).max()))
    return values


def answer(path: str, kind: str) -> Answer:
    """What this package computes with a folder in any format, as the script in transformers."""
    from official import xlnet
    from official.xlnet.inference.task_prediction import load_task

    first, *second = TEXTS[kind]
    inputs = xlnet.load_tokenizer(path)(first, second[0] if second else None)
    is_real = ~inputs["is_padding"]
    vectors = xlnet.load_encoder(path)(inputs)["content"].numpy()
    found: Answer = {"content": vectors[is_real]}
    if kind == "encoder":
        return found | {"pipeline": found["content"]}
    if kind == "lm":
        return found | {"logits": _next_token_logits(xlnet.load_pretrainer(path), inputs)}
    model, _ = load_task(path)
    if kind == "multiple_choice":
        features = {name: value[None] for name, value in inputs.items()}
    else:
        features = {name: value[:, None] for name, value in inputs.items()}
    if "answer" in kind:
        features |= {"can_answer": features["is_padding"] == 0, "may_start": is_real[:, None]}
    outputs = {name: value.numpy() for name, value in model(features).items()}
    if kind == "simple_answers":
        both = (outputs["start_logits"], outputs["end_logits"])
        return found | {"spans": [np.where(is_real, x, 0) for x in both]}
    if kind == "question_answering":
        return found | _answers(outputs)
    if kind == "token_classification":
        probabilities = special.softmax(outputs["logits"], axis=-1)
        rows = [x[keep][:-2] for x, keep in zip(probabilities, is_real, strict=True)]
        best = [[int(p.argmax()), float(p.max())] for row in rows for p in row]
        return found | {"logits": outputs["logits"][is_real], "pipeline": best}
    found["logits"] = outputs["logits"]
    if kind in PREDICTED:
        found["pipeline"] = _predicted(path, kind)
    return found


def _next_token_logits(model: Any, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """Logits of a target at the end that attends to all but itself."""
    rows, length = inputs["token_ids"].shape
    order = np.tile(np.arange(length, dtype=np.int32) // (length - 1), [rows, 1])
    targets = np.full([rows, 1], length - 1, np.int32)
    return model(inputs | {"target_positions": targets, "order": order})["logits"].numpy()


def _predicted(path: str, kind: str) -> list[list[float]]:
    """`xlnet.predict`, numbers in the order of the labels."""
    from official import xlnet

    rows = xlnet.predict(path, _examples(kind))
    if kind == "regression":
        return [[row["score"]] for row in rows]
    return [[p for _, p in sorted(row["probabilities"].items())] for row in rows]


def _examples(kind: str) -> list[Any]:
    return [row if len(row) > 1 else row[0] for row in zip(*TEXTS[kind], strict=True)]


def _answers(outputs: dict[str, np.ndarray]) -> Answer:
    """Starts, and ends of each, with their probabilities; see the script."""
    found = []
    for row, starts in enumerate(outputs["start_position"]):
        places = {}
        for n, start in enumerate(starts):
            places[f"{start}"] = np.exp(outputs["start_log_prob"][row, n])
            ends = outputs["end_position"][row, n], outputs["end_log_prob"][row, n]
            places |= {f"{start} {e}": np.exp(p) for e, p in zip(*ends, strict=True) if p > -1e29}
        found.append(places)
    return {"answers": found, "no_answer": outputs["no_answer"]}


def continue_run(kind: str, source: str, output: pathlib.Path) -> str:
    """Trains a model for a step that changes nothing; returns its model directory."""
    from official import xlnet

    if kind == "lm":
        return _continue_pretraining(source, output)
    task = xlnet.load_config(source).task
    examples = _labelled(kind, task.labels)
    settings = [*_STILL, *_OF_TASK, *(["query_length=9"] if "answer" in kind else [])]
    name = task.name or "classification"
    xlnet.finetune(source, examples, examples, str(output), name, set=settings)
    return str(output)


def _continue_pretraining(source: str, output: pathlib.Path) -> str:
    from official import xlnet
    from official.xlnet.api.prepare import prepare

    windows = {"seq_len": 31, "reuse_len": 11, "num_predict": 5, "num_lanes": 2}
    settings = [f"data.{key}={value}" for key, value in windows.items()]
    settings += ["model.mem_len=7", "training.batch_size=2", *_STILL]
    config = xlnet.load_config(source, settings)
    text = output.with_suffix(".txt")
    text.write_text("\n\n".join(" ".join(SINGLE[0]) for _ in range(29)))
    data = f"{output}_data"
    prepare(str(text), source, config, data, num_workers=1)
    xlnet.pretrain(source, data, str(output), settings, init_from=source)
    return str(output)


def _labelled(kind: str, labels: tuple[str, ...]) -> list[Any]:
    """Examples with labels that the head of a folder knows."""
    from official.xlnet.data.examples import TextExample
    from official.xlnet.tasks.multiple_choice import ChoiceExample
    from official.xlnet.tasks.question_answering import QuestionExample
    from official.xlnet.tasks.token_classification import TaggedExample

    rows = list(enumerate(zip(*TEXTS[kind], strict=True)))
    if "answer" in kind:
        word = [(context.split()[0], 0) for _, (context, _) in rows]
        return [
            QuestionExample(str(n), question, context, (word[n],))
            for n, (context, question) in rows
        ]
    if kind == "multiple_choice":
        texts, choices = TEXTS[kind]
        return [ChoiceExample(str(n), (texts[0],), tuple(choices), n) for n in range(3)]
    if kind == "token_classification":
        words = [tuple(texts[0].split()) for _, texts in rows]
        return [TaggedExample(str(n), w, (labels[n],) * len(w)) for n, w in enumerate(words)]
    of_kind: dict[str, list[Any]] = {"regression": [0.5, 1.5, 2.5]}
    of_kind["multi_label"] = [(label,) for label in labels]
    names = of_kind.get(kind, [*(labels or "ab")] * 2)
    return [TextExample(str(n), tuple(texts), names[n]) for n, texts in rows]


if __name__ == "__main__":
    main()
