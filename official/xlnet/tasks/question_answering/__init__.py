"""Extractive question answering: SQuAD."""

NAMES = ("question_answering", "question_answering_simple")
DATASETS = {"squad": {"name": "question_answering", "metric": "f1"}}
INPUTS = ("question", "context")
