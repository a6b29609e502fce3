# %%
"""XLNet from text to predictions, in a minute.

The cells run as a script, as a notebook (`jupytext --to notebook docs/tutorial.py`) and in the
tests.
"""

# %% The text: the Python manual, one document per topic.
import pydoc_data.topics
import tempfile

import numpy as np
import tensorflow as tf

from official import xlnet

directory = tempfile.mkdtemp()
with open(f"{directory}/text.txt", "w", encoding="utf-8") as file:
    for topic in pydoc_data.topics.topics.values():
        lines = [line.strip() for line in topic.splitlines()]
        file.write("\n".join(line for line in lines if line) + "\n\n")

# %% A configuration and a vocabulary. Sizes are small, so that training takes seconds.
recipe = "configs/ablation/xlnet_k6.yaml"
config = xlnet.XLNetConfig.load(recipe, ["num_steps=30", "warmup_steps=5"])
xlnet.train_vocabulary([f"{directory}/text.txt"], f"{directory}/vocab", config.model.vocab_size)

# %% The data set: lanes of windows, half of them reversed text.
# One process is enough here; worker processes need a script with `if __name__ == "__main__":`.
paths = [f"{directory}/text.txt"], f"{directory}/vocab", config, f"{directory}/data"
counts = xlnet.prepare(*paths, num_workers=1)
print(f"{counts['documents']} documents, {counts['tokens']} tokens, {counts['windows']} windows")

# %% Inputs of a training step: windows, and the position of each token in the factorization order.
batch_size = config.training.batch_size
data = xlnet.pretraining_dataset(f"{directory}/data", batch_size, config=config)
model = xlnet.XLNetPretrainer(config)
task = model.objective(next(iter(data)))
tokenizer = xlnet.Tokenizer(f"{directory}/data/spiece.model")
pieces = [tokenizer.id_to_piece(int(i)) for i in task.inputs["token_ids"][0, :20]]
for piece, step in zip(pieces, task.inputs["order"][0, :20].numpy(), strict=True):
    print(f"{step:3d} {piece}" if step else f"    {piece}")

# %% Pre-training. An interrupted run resumes when this is called again.
metrics = xlnet.pretrain(config, f"{directory}/data", f"{directory}/model")
print(metrics)

# %% Held-out loss, with a unigram baseline.
print(xlnet.evaluate(f"{directory}/model", f"{directory}/data"))

# %% Infilling: the token at `position` is last in the order, so it is predicted from all others.
model = xlnet.load_pretrainer(f"{directory}/model")
ids = tokenizer.encode("The method returns a new list of the items in this object.")
position = 4
order = np.zeros([1, len(ids)], np.int32)
order[0, position] = 1
blank = {"order": order, "target_positions": np.array([[position]])}
logits = model({"token_ids": np.array([ids]), **blank})["logits"]
guesses = tf.math.top_k(logits[0, 0], 5).indices.numpy()
print("was", tokenizer.id_to_piece(ids[position]))
print("guesses", [tokenizer.id_to_piece(int(i)) for i in guesses])

# %% Embeddings of a text from the encoder, which fine-tuning starts from.
encoder = xlnet.load_encoder(f"{directory}/model")
content = encoder(np.array([ids]))["content"]
print(content.shape)
