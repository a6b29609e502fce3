"""Readers of task data: from files as they are downloaded to `official.xlnet.examples`.

`read_examples` finds the reader by the kind of task and by what the path is. Nothing is dropped
silently: what cannot be used is counted, or is an error that names file and line.
"""

from __future__ import annotations

from data_prep.tasks.datasets import DATASETS, task_settings
from data_prep.tasks.reading import Reading, read_examples

__all__ = ["DATASETS", "Reading", "read_examples", "task_settings"]
