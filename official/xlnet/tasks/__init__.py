"""Fine-tuning tasks: a folder for each kind, and what they share.

* `<folder>/__init__.py`: the names of the task, its known data sets, the inputs of its exported
  model, keys of the configuration that only it has, and its examples; `reader.py`: files of them;
  `task.py`: preprocessing, predictions, metrics and a plot, and the names of the
  head's variables in HF's and TF1's formats; `graph.py`: the head with its loss, and the service,
  what an exported model answers.
* `task`, `text_task`: base classes of tasks; `labels`: classes and scales.
* `batching`: padding, bucketing and batching of examples.
* `reports`: writes predictions, metrics and a plot of an evaluation.

`catalog` enters the tasks of the folders in the registries of `official.xlnet.configs.registry`; it
is imported when a task is first looked up, and the files of a task when its name is.
"""
