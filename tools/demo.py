"""`make demo`: trains a small XLNet on docstrings of installed packages and fills in blanks.

All output is written to `demo_output/`. Running it again resumes an interrupted run.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import subprocess
import sys

from official.xlnet import cli
from official.xlnet.runtime.progress import elapsed_time
from tools.docstring_corpus import write_corpus

CONFIG = "configs/tiny.yaml"
MINUTES = 9.0
_VOCAB_SIZE = 4000  # As in CONFIG.
_SEED = 0
_NUM_GUESSES = 3
_SMOOTHING = 50  # The moving average of the loss spans 1 / _SMOOTHING of the run.
_NUM_BLANKS = 256
_NUM_SHOWN = 8
_CONTEXT = 16  # Number of tokens shown on each side of a blank.


def main() -> int:
    """Runs the demo; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="demo_output", help="output directory")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help="maximum pre-training time, in minutes"
    )
    arguments = parser.parse_args()
    output = arguments.output
    cli.set_environment_defaults()
    os.makedirs(output, exist_ok=True)
    corpus, vocab, data, model = (
        os.path.join(output, name) for name in ("corpus.txt", "vocab", "data", "model")
    )

    _say("Corpus: docstrings of the installed Python packages")
    with elapsed_time("reading docstrings"):
        num_documents = write_corpus(corpus)
    print(f"{corpus}: {num_documents} documents, {os.path.getsize(corpus) / 1e6:.1f} MB")
    _xlnet("Vocabulary", "vocab", f"--input={corpus}", f"--output={vocab}", f"--size={_VOCAB_SIZE}")
    _xlnet(
        "Pre-training records",
        "prepare",
        f"--input={corpus}",
        f"--vocab={vocab}",
        f"--config={CONFIG}",
        f"--output={data}",
    )
    _xlnet(
        f"Pre-training, for at most {arguments.minutes:g} minutes; loss in nats per target",
        "pretrain",
        f"--config={CONFIG}",
        f"--data={data}",
        f"--output={model}",
        f"--minutes={arguments.minutes:g}",
    )
    _xlnet(
        "Evaluation on held-out documents; unigram_loss is the loss of a unigram baseline",
        "evaluate",
        f"--model={model}",
        f"--data={data}",
    )
    _say("Predictions for masked words of held-out documents")
    with elapsed_time("filling in blanks"):
        shown = _fill_in_blanks(model, data)
    print(shown)
    picture = os.path.join(output, "loss.png")
    with elapsed_time("drawing the loss"):
        _plot_loss(model, data, picture)

    _say("Done")
    print(f"model            {model}")
    print(f"loss curve       {picture}")
    print(f"TensorBoard      .venv/bin/tensorboard --logdir={os.path.join(model, 'logs')}")
    return 0


def _say(text: str) -> None:
    print(f"\n== {text}", flush=True)


def _xlnet(title: str, *arguments: str) -> None:
    """Prints and runs an `xlnet` command; exits if it fails."""
    _say(title)
    print("$ xlnet " + shlex.join(arguments), flush=True)
    # In a process of its own: TensorFlow divides the cores among threads once, when it starts.
    done = subprocess.run([sys.executable, "-m", cli.__name__, *arguments])
    if done.returncode:
        sys.exit(done.returncode)


def _fill_in_blanks(model_dir: str, data_dir: str) -> str:
    """Masks words in held-out windows; returns the model's predictions and their accuracy."""
    import numpy as np
    import tensorflow as tf

    from official.xlnet.checkpoints.any_format import load_tokenizer
    from official.xlnet.checkpoints.pretrained_directory import load_pretrainer
    from official.xlnet.data.pretraining_dataset import pretraining_dataset

    tokenizer = load_tokenizer(model_dir)
    rng = random.Random(_SEED)
    windows, positions = [], []
    for window in pretraining_dataset(data_dir, 2, "heldout", epochs=1).unbatch():
        token_ids = window["token_ids"].numpy()
        starts = window["is_word_start"].numpy()
        words = [
            position
            for position in range(_CONTEXT, len(token_ids) // 2)
            if starts[position : position + 2].all()
            and tokenizer.id_to_piece(int(token_ids[position]))[1:].isalpha()
        ]
        if words and not window["is_reversed"]:
            windows.append(token_ids)
            positions.append(rng.choice(words))
    chosen = sorted(rng.sample(range(len(windows)), min(_NUM_BLANKS, len(windows))))
    token_ids_BT = np.stack([windows[i] for i in chosen])
    target_B1 = np.array([[positions[i]] for i in chosen], np.int32)
    # The blank is last in the factorization order, so it is predicted from all other tokens.
    order_BT = np.zeros_like(token_ids_BT)
    np.put_along_axis(order_BT, target_B1, 1, axis=1)
    outputs = load_pretrainer(model_dir)(
        {"token_ids": token_ids_BT, "order": order_BT, "target_positions": target_B1}
    )
    guesses_BG = tf.math.top_k(outputs["logits"][:, 0], _NUM_GUESSES).indices.numpy()
    hidden_B = np.take_along_axis(token_ids_BT, target_B1, axis=1)[:, 0]

    def text(ids):
        return tokenizer.decode([int(i) for i in ids])

    lines = []
    for row in rng.sample(range(len(chosen)), min(_NUM_SHOWN, len(chosen))):
        ids, position = token_ids_BT[row], target_B1[row, 0]
        before = text(ids[position - _CONTEXT : position])
        after = text(ids[position + 1 : position + _CONTEXT])
        lines.append(f"\n  … {before} ____ {after} …")
        guesses = ", ".join(text([guess]) or "?" for guess in guesses_BG[row])
        lines.append(f"    target: {text([hidden_B[row]])}    predictions: {guesses}")
    most_common = np.bincount(hidden_B).argmax()
    lines.append(
        f"\nTop-1 accuracy on {len(chosen)} blanks: "
        f"{np.mean(guesses_BG[:, 0] == hidden_B):.0%}; most frequent word "
        f"({text([most_common])!r}): {np.mean(hidden_B == most_common):.0%}."
    )
    return "\n".join(lines)


def _plot_loss(model_dir: str, data_dir: str, picture: str) -> None:
    """Plots the smoothed training loss, the held-out loss, and the loss of a unigram baseline."""
    import matplotlib
    import numpy as np

    from official.xlnet.runtime.history import read_history
    from official.xlnet.training.evaluation import evaluate

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    history = read_history(model_dir)
    steps = np.array([line["step"] for line in history])
    losses = np.array([line["loss"] for line in history])
    width = max(1, len(losses) // _SMOOTHING)
    smooth = np.convolve(losses, np.ones(width) / width, mode="valid")
    heldout = evaluate(model_dir, data_dir)
    figure, axes = plt.subplots(figsize=(8, 5))
    axes.plot(steps, losses, color="tab:blue", alpha=0.25, linewidth=0.8)
    axes.plot(steps[width - 1 :], smooth, color="tab:blue", label="training")
    axes.plot(steps[-1], heldout["loss"], "o", color="tab:red", label="held-out")
    axes.axhline(heldout["unigram_loss"], color="gray", linestyle="--", label="unigram baseline")
    axes.set(xlabel="step", ylabel="loss, nats per target", title="Pre-training")
    axes.legend()
    figure.savefig(picture, dpi=150, bbox_inches="tight")


if __name__ == "__main__":
    sys.exit(main())
