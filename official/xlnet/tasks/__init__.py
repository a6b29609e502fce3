"""Fine-tuning tasks: preprocessing, predictions and metrics of each kind of task.

* `task`: the `Task` interface, with one module for each kind. `registry` lists them by name.
* `batching`: padding, bucketing and batching of examples.
* `reports`: writes predictions, metrics and a plot of an evaluation.

The layers and losses of tasks are in `official.xlnet.modeling.heads`.
"""
