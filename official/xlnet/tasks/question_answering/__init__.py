"""Extractive question answering: SQuAD."""

DATASETS = {"squad": {"name": "question_answering", "metric": "f1"}}
INPUTS = ("question", "context")
