"""The description of a journey, as a function of its number."""

import random

from tests.property.journeys.draws.configuration import draw_configuration, repair
from tests.property.journeys.draws.corpus import draw_corpus
from tests.property.journeys.draws.task_files import RIGHT, draw_task
from tests.property.journeys.draws.vocabulary import draw_vocabulary

SOURCES = ("scratch", "scratch", "scratch", "hf", "tf1", "version_0_1")
READING = ("evaluate", "score", "generate", "embed", "export", "convert")
REPLICAS = 2  # CPU devices of the processes of `make journeys`.


def draw(number: int, short: bool = False) -> dict:
    """A journey.

    Args:
      number: its number, which is its seed.
      short: whether it visits fewer verbs.
    """
    rng = random.Random(f"journey {number}")
    config = draw_configuration(rng, number)
    # Text settings of the vocabulary; they differ from the configuration's now and then.
    vocabulary = draw_vocabulary(rng)
    for key in ("lowercase", "keep_accents"):
        same = config.get(f"data.{key}", False)
        vocabulary[key] = same if rng.random() < 0.9 else not same
    source = rng.choice(SOURCES)
    routes = ("files", "data", "language", "task", "all")
    route = rng.choices(routes, (8, 5, 3, 3, 0) if short else (2, 2, 4, 5, 2))[0]
    strategy = rng.choice(("one_device", "one_device", "mirrored"))
    is_wild = rng.random() < 0.15
    if not is_wild:
        repair(config, strategy, REPLICAS)
    reading = rng.sample(READING, len(READING))
    if short:
        reading = [verb for verb in reading if verb != "export" or rng.random() < 0.1][:2]
    corpus, task = draw_corpus(rng), draw_task(rng)
    if route in ("task", "all") and (short or rng.random() < 0.8):
        corpus["script"] = task["script"]  # So that the vocabulary is of the task's text.
    if short and route == "task":  # Few as they are, they go all the way.
        task["properties"] = [name for name in task["properties"] if name in RIGHT]
        vocabulary |= {"kind": "ours", "model_has_more": max(0, vocabulary["model_has_more"])}
    return {
        "number": number,
        "route": route,
        "is_wild": is_wild,
        # Several replicas compute in graphs only.
        "is_eager": (short or rng.random() < 0.6)
        and source != "version_0_1"
        and strategy == "one_device",
        "corpus": corpus,
        "vocabulary": vocabulary,
        "config": config,
        "source": source,
        "strategy": strategy,
        "task": task,
        "reading": reading,
        "interrupted": {
            "verb": rng.choice(("prepare", "pretrain", "finetune", *READING)),
            "kind": rng.choice(("kill", "preempt", "rename", "twice")),
            "at": rng.randint(1, 4),
        },
    }
