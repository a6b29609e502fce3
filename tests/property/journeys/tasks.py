"""A journey with a task: files, fine-tuning, prediction, export, conversion and the Python API."""

import json
import pathlib
import shutil

import numpy as np
import tensorflow as tf
import yaml

from official.xlnet.api.finetuning import finetune
from official.xlnet.api.prediction import Predictor, predict
from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import TextExample
from official.xlnet.inference.task_prediction import load_task, unit_lengths
from official.xlnet.tasks.batching import collate
from tests.property.journeys import oracles
from tests.property.journeys.draws.configuration import is_read
from tests.property.journeys.draws.task_files import TABLES, TaskFile, is_doubtful, write_task_file
from tests.property.journeys.language import training_of
from tests.property.journeys.promises import close, promise
from tests.property.journeys.repeats import repeated
from tests.property.journeys.verbs import Refused, World


def travel(world: World, model: str | None, vocab: str, config: str) -> None:
    """Fine-tunes a model, or random weights, and holds all that predicts against each other."""
    task = world.journey["task"]
    files = {s: write_task_file(task, world.folder, s) for s in ("train", "dev", "test")}
    tuned = _finetune(world, model, vocab, config, files)
    predictor = Predictor(tuned)
    for check in (_evaluate, _predict, _served, _converted):
        try:
            check(world, tuned, files, predictor)
        except Refused as error:
            world.refused(error, load_config(tuned))


def _finetune(world: World, model, vocab: str, config: str, files) -> str:
    task, out = world.journey["task"], world.folder / "tuned"
    sections = yaml.safe_load(pathlib.Path(config).read_text())
    drawn = world.journey["config"]
    for _ in range(2):  # Nothing is read because of a key that nothing reads.
        drawn = {
            key: value
            for key, value in drawn.items()
            if key.startswith("task.")
            and task["kind"] in (TaskConfig().tasks_with(key[5:]) or [task["kind"]])
            and is_read(key, drawn, name=task["kind"])
        }
    sections["task"] = {key[5:]: value for key, value in drawn.items()}
    if model:  # Its own sizes.
        del sections["model"]
        sections.pop("data", None)
    recipe = world.folder / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(sections))
    base = [f"--task={task['kind']}", f"--config={recipe}", *files["train"].sets]
    base += [f"--train={files['train'].path}", f"--dev={files['dev'].path}"]
    base += [f"--init_from={model}"] if model else [f"--vocab={vocab}/spiece.model"]
    base += [f"--strategy={world.journey['strategy']}"]
    result = repeated(
        world,
        "finetune",
        lambda path: [*base, f"--output={path}"],
        out,
        training_of,
    )
    usable = [y for row, y in files["train"].rows if row is not None and y is not None]
    lost = sum(v for k, v in result.items() if k.startswith("train_") and k != "train_examples")
    promise(
        result["train_examples"] + lost >= len(files["train"].rows)
        and result["train_examples"] <= len(usable),
        "finetune reads the rows or counts them",
        (result, len(files["train"].rows)),
    )
    _metrics_follow(task, tuned=str(out), file=files["dev"], report=out, metrics=result)
    if world.journey["number"] % 3 == 0 and task["kind"] in TABLES and not is_doubtful(task):
        rows = [[(*texts, y) for texts, y in files[split].rows] for split in ("train", "dev")]
        start = {"vocab": None if model else f"{vocab}/spiece.model", "task": task["kind"]}
        start |= {"config": str(recipe), "strategy": world.journey["strategy"]}
        got = finetune(model, *rows, str(world.folder / "by_python"), **start)
        metric = {key: value for key, value in got.items() if isinstance(value, float)}
        for key, value in metric.items():
            promise(
                close(result[key], value), "finetune on a file is that on tuples", (result, got)
            )
    return str(out)


def _metrics_follow(task: dict, tuned: str, file: TaskFile, report, metrics: dict) -> None:
    """Metrics are those of the predictions that were written."""
    rows = oracles.json_lines(report / "predictions.jsonl")
    if len(rows) != len(file.rows):
        promise(
            is_doubtful(task), "every row of dev has its prediction", (len(rows), len(file.rows))
        )
        return
    labels = load_config(tuned).task.labels
    true = [y for _, y in file.rows]
    if task["kind"] == "ranking":
        true = [(query, grade) for (query, _), grade in file.rows]
    wanted = oracles.metrics_of(task["kind"], labels, true, rows)
    for name, value in wanted.items():
        promise(
            close(metrics[name], float(value), 1e-3 if task["kind"] == "regression" else 1e-5),
            f"{name} is that of the predictions",
            (metrics, wanted),
        )


def _evaluate(world: World, tuned: str, files, predictor) -> None:
    report = world.folder / "report"
    metrics = world(
        "evaluate", f"--model={tuned}", f"--data={files['dev'].path}", f"--output={report}"
    )
    _metrics_follow(world.journey["task"], tuned, files["dev"], report, metrics)
    with open(f"{tuned}/metrics.json") as file:
        before = json.load(file)
    written = [oracles.json_lines(f"{folder}/predictions.jsonl") for folder in (tuned, report)]
    _alike(written[1], written[0], "evaluate predicts as finetune does")
    for name, value in before.items():
        # Scores that are nearly equal trade their ranks by rounding.
        if name in metrics and isinstance(value, float) and name != "spearman":
            promise(
                close(value, metrics[name], 2e-3), "evaluate repeats finetune", (before, metrics)
            )


def _predict(world: World, tuned: str, files, predictor) -> None:
    out, task = world.folder / "predictions.jsonl", world.journey["task"]
    repeated(
        world,
        "predict",
        lambda path: [f"--model={tuned}", f"--input={files['test'].path}", f"--output={path}"],
        out,
        lambda path: path.read_bytes(),
    )
    rows, wanted = oracles.json_lines(out), files["test"].rows
    promise(len(rows) == len(wanted), "every row has its prediction", (len(rows), len(wanted)))
    if task["kind"] == "token_classification":
        got = [tuple(row["words"]) for row in rows]
        promise(got == [words for words, _ in wanted], "words keep their places", got[:2])
    if task["kind"] not in TABLES:
        return
    texts = [row if len(row) > 1 else row[0] for row, _ in wanted]
    _alike(predictor(texts[::-1])[::-1], rows, "predict on a file is predict on its texts")
    _alike([predict(tuned, texts[3:4])[0]], rows[3:4], "batch mates change no prediction")
    _alike(_in_keras(tuned, texts), rows, "the Keras model predicts alike")


def _in_keras(tuned: str, texts: list) -> list[dict]:
    """Predictions of the Keras layers, each text by itself and padded to the full length."""
    model, task = load_task(tuned)
    found = []
    for n, text in enumerate(texts[:4]):
        example = TextExample(str(n), text if isinstance(text, tuple) else (text,))
        [[unit]] = task.units([example])
        arrays = collate([unit], unit_lengths(model.config)[-1], 1)
        batch = {name: tf.constant(x) for name, x in arrays.items()}
        outputs = {name: x.numpy()[0] for name, x in model(batch, training=False).items()}
        found.append(task.predict(example, [outputs]))
    return found


def _alike(got: list[dict], wanted: list[dict], name: str) -> None:
    for a, b in zip(got, wanted, strict=False):
        for key in ("probabilities", "score"):
            if key not in b:
                continue
            x, y = a[key], b[key]
            if isinstance(y, dict):
                promise(x.keys() == y.keys(), name, (x, y))
                x, y = list(x.values()), [y[label] for label in x]
            promise(np.allclose(x, y, rtol=2e-3, atol=2e-3), name, (a, b))


def _served(world: World, tuned: str, files, predictor) -> None:
    task = world.journey["task"]
    if "export" not in world.journey["reading"][:4]:
        return
    import tensorflow_text  # noqa: F401  The graph has its operations.

    out = world.folder / "exported"
    world("export", f"--model={tuned}", f"--output={out}")
    if task["kind"] not in TABLES:
        return
    served = tf.saved_model.load(f"{out}/1").signatures["serving_default"]
    names = list(served.structured_input_signature[1])
    columns = load_config(tuned).task.text_columns
    promise(len(names) == len(columns), "each text has its input", (names, columns))
    rows = [row for row, _ in files["test"].rows][:5]
    order = _order(names, columns)
    answers = served(**{n: tf.constant([r[i] for r in rows]) for n, i in order.items()})
    answers = {name: x.numpy() for name, x in answers.items()}
    wanted = predictor([row if len(row) > 1 else row[0] for row in rows])
    for n, row in enumerate(wanted):
        got = (
            {"score": answers["score"][n]}
            if "score" in answers
            else {
                "probabilities": dict(
                    zip(
                        [x.decode() for x in answers["labels"][n]],
                        answers["probabilities"][n],
                        strict=True,
                    )
                )
            }
        )
        _alike([got], [row], "the exported model predicts alike")


def _order(names: list[str], columns) -> dict[str, int]:
    """{input: index of its text}: by the letters and digits that they share."""
    if len(names) == 1:
        return {names[0]: 0}
    same = {name: [i for i, c in enumerate(columns) if c == name] for name in names}
    if all(len(found) == 1 for found in same.values()):
        return {name: found[0] for name, found in same.items()}
    # `text-a` and `text_a`: one of them keeps its name, the other is the rest.
    kept = {name: found[0] for name, found in same.items() if found}
    rest = [i for i in range(len(columns)) if i not in kept.values()]
    return kept | dict(zip(sorted(n for n in names if n not in kept), rest, strict=True))


def _converted(world: World, tuned: str, files, predictor) -> None:
    if "convert" not in world.journey["reading"][:4]:
        return
    there, back = world.folder / "tuned_hf", world.folder / "tuned_back"
    for path in (there, back):
        shutil.rmtree(path, ignore_errors=True)
    said = world("convert", f"--source={tuned}", f"--output={there}", "--to=hf")["differences"]
    world("convert", f"--source={there}", f"--output={back}")
    if world.journey["task"]["kind"] not in TABLES:
        return
    texts = [row if len(row) > 1 else row[0] for row, _ in files["test"].rows]
    reads_alike = not any("task.long_texts" in sentence for sentence in said)
    for path in (there, back) if reads_alike else ():
        _alike(predict(str(path), texts), predictor(texts), f"{path.name} predicts alike")
