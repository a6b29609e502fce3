"""`make demo`: from the documentation of the installed packages to an XLNet that fills in blanks.

Everything it writes is in `demo_output/`. Run again, it continues where it was stopped.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import sys

from official.xlnet import cli
from tools.docstring_corpus import write_corpus

CONFIG = "configs/tiny.yaml"
MINUTES = 9.0
_NUM_BLANKS = 256
_NUM_SHOWN = 8
_CONTEXT = 16  # Tokens shown on either side of a blank.


def main() -> int:
    """Runs the whole demo; returns an exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="demo_output", help="directory to write to")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="time for pre-training")
    arguments = parser.parse_args()
    output = arguments.output
    os.makedirs(output, exist_ok=True)
    corpus, vocab, data, model = (
        os.path.join(output, name) for name in ("corpus.txt", "vocab", "data", "model")
    )

    _say("A corpus: the documentation strings of the installed Python packages")
    num_documents = write_corpus(corpus)
    print(f"{corpus}: {num_documents} documents, {os.path.getsize(corpus) / 1e6:.1f} MB")
    _xlnet("A vocabulary", "vocab", f"--input={corpus}", f"--output={vocab}", "--size=4000")
    _xlnet(
        "Records for pre-training",
        *("prepare", f"--input={corpus}", f"--vocab={vocab}"),
        *(f"--config={CONFIG}", f"--output={data}"),
    )
    _xlnet(
        f"Pre-training, for at most {arguments.minutes:g} minutes; loss in nats per target",
        *("pretrain", f"--config={CONFIG}", f"--data={data}"),
        *(f"--model_dir={model}", f"--minutes={arguments.minutes:g}"),
    )
    _xlnet(
        "Evaluation on held-out documents; unigram_loss is what word counts alone would give",
        *("evaluate", f"--model={model}", f"--data={data}"),
    )
    _say("Words blanked out of held-out documents, and what the model puts there")
    _fill_in_blanks(model, data)
    picture = os.path.join(output, "loss.png")
    _plot_loss(model, data, picture)

    _say("Done")
    print(f"model            {model}")
    print(f"loss curve       {picture}")
    print(f"TensorBoard      .venv/bin/tensorboard --logdir={os.path.join(model, 'logs')}")
    return 0


def _say(text: str) -> None:
    print(f"\n== {text}", flush=True)


def _xlnet(title: str, *arguments: str) -> None:
    """Says and runs one `xlnet` command; ends the demo if it fails."""
    _say(title)
    print("$ xlnet " + shlex.join(arguments), flush=True)
    status = cli.main(list(arguments))
    if status:
        sys.exit(status)


def _fill_in_blanks(model_dir: str, data_dir: str) -> None:
    """Hides one word in each of some held-out windows and shows the model's first guesses."""
    import numpy as np
    import tensorflow as tf

    from official.xlnet.checkpoints.model_directory import load_pretrainer
    from official.xlnet.data.pretraining_dataset import pretraining_dataset
    from official.xlnet.tokenization.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(model_dir)
    rng = random.Random(0)
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
    # Everything but the blank comes before it in the order, so the model sees all of it.
    order_BT = np.zeros_like(token_ids_BT)
    np.put_along_axis(order_BT, target_B1, 1, axis=1)
    outputs = load_pretrainer(model_dir)(
        {"token_ids": token_ids_BT, "order": order_BT, "target_positions": target_B1}
    )
    guesses_BG = tf.math.top_k(outputs["logits"][:, 0], 3).indices.numpy()
    hidden_B = np.take_along_axis(token_ids_BT, target_B1, axis=1)[:, 0]

    def text(ids):
        return tokenizer.decode([int(i) for i in ids])

    for row in rng.sample(range(len(chosen)), min(_NUM_SHOWN, len(chosen))):
        ids, position = token_ids_BT[row], target_B1[row, 0]
        before = text(ids[position - _CONTEXT : position])
        after = text(ids[position + 1 : position + _CONTEXT])
        print(f"\n  … {before} ____ {after} …")
        guesses = ", ".join(text([guess]) or "?" for guess in guesses_BG[row])
        print(f"    was: {text([hidden_B[row]])}    guesses: {guesses}")
    most_common = np.bincount(hidden_B).argmax()
    print(
        f"\nOf {len(chosen)} blanks the first guess is right in "
        f"{np.mean(guesses_BG[:, 0] == hidden_B):.0%}; always saying "
        f"{text([most_common])!r} would be in {np.mean(hidden_B == most_common):.0%}."
    )


def _plot_loss(model_dir: str, data_dir: str, picture: str) -> None:
    """Draws the training loss, smoothed, and the level of word counts alone."""
    import matplotlib
    import numpy as np

    from official.xlnet.runtime.history import read_history
    from official.xlnet.training.evaluation import evaluate

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    history = read_history(model_dir)
    steps = np.array([line["step"] for line in history])
    losses = np.array([line["loss"] for line in history])
    width = max(1, len(losses) // 50)
    smooth = np.convolve(losses, np.ones(width) / width, mode="valid")
    heldout = evaluate(model_dir, data_dir)
    figure, axes = plt.subplots(figsize=(8, 5))
    axes.plot(steps, losses, color="tab:blue", alpha=0.25, linewidth=0.8)
    axes.plot(steps[width - 1 :], smooth, color="tab:blue", label="training")
    axes.plot(steps[-1], heldout["loss"], "o", color="tab:red", label="held-out")
    axes.axhline(heldout["unigram_loss"], color="gray", linestyle="--", label="word counts alone")
    axes.set(xlabel="step", ylabel="loss, nats per target", title="Pre-training")
    axes.legend()
    figure.savefig(picture, dpi=150, bbox_inches="tight")


if __name__ == "__main__":
    sys.exit(main())
