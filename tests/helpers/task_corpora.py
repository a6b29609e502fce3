"""Small task data for tests: made of the words of `corpora`, with labels that can be learned."""

import csv
import json
import random

from official.xlnet.configs.experiment import XLNetConfig
from tests.helpers.corpora import WORDS

GOOD, BAD = ("water", "made", "first"), ("but", "not", "no")


def sentence(rng, least=3, most=9):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(least, most)))


def labelled(rng, number):
    """(label, text): the label says whether a good or a bad word is in the text."""
    rows = []
    for n in range(number):
        words = [word for word in sentence(rng).split() if word not in GOOD + BAD]
        words.insert(rng.randint(0, len(words)), rng.choice(GOOD if n % 2 else BAD))
        rows.append((("bad", "good")[n % 2], " ".join(words)))
    return rows


def write_table(path, header, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        if str(path).endswith(".jsonl"):
            file.writelines(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows)
        elif str(path).endswith(".csv"):
            csv.writer(file).writerows(([header] if header else []) + list(rows))
        else:
            lines = ([header] if header else []) + list(rows)
            file.writelines("\t".join(map(str, row)) + "\n" for row in lines)
    return str(path)


def task_config(vocab_size=211, mem_len=0, **task):
    """A network that learns `labelled` in seconds."""
    training = {
        name: task.pop(name)
        for name in ("batch_size", "num_steps", "checkpoint_steps", "learning_rate", "seed")
        if name in task
    }
    return XLNetConfig.from_dict(
        {
            "model": {
                "vocab_size": vocab_size,
                "num_layers": 1,
                "d_model": 26,
                "num_heads": 2,
                "d_inner": 31,
                "mem_len": mem_len,
                "dropout": 0.0,
                "dropatt": 0.0,
                "init_std": 0.1,
            },
            "training": {
                "batch_size": 7,
                "num_steps": 60,
                "warmup_steps": 0,
                "learning_rate": 0.01,
                "checkpoint_steps": 20,
                **training,
            },
            "task": {"max_length": 23, "num_buckets": 1, **task},
        }
    )


def random_rng(seed=0):
    return random.Random(seed)
