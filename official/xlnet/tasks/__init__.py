"""Fine-tuning tasks: what is read, trained, predicted and reported for each.

* `heads`: small layers on the shared encoder, with their losses; they know no text.
* `model`: encoder and head as a `tf_keras.Model`.
* `task`: what a task is; one module for each kind. `registry` lists them.
* `batching`: units of input to batches. `reports`: files of an evaluation.
"""
