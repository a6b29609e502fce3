"""Refusals that may be: by whom, in which words, and why nobody could have refused before."""

import re

from tests.property.journeys.draws.task_files import is_doubtful

# (verb, words of its sentence, why it may come from this verb and not from one before it)
ALLOWED = (
    ("prepare", "num_lanes", "the number of tokens is known after the text was read"),
    ("prepare", "too little text|too small|not enough", "as above"),
    ("prepare", "<unk>|unknown", "how much of the text the vocabulary lacks is known here first"),
    ("prepare", "data.phrases", "what the words of a phrase are is the vocabulary's"),
    ("pretrain|finetune", "finite", "training diverged"),
    ("pretrain", "the number of lanes", "prepare warns of it, as pretrain may get another size"),
    ("pretrain", "no target in any step", "prepare warns of it, as pretrain may get another unit"),
    ("finetune", "which task.answer_module=san compares", "what the examples have is known here"),
    ("finetune", "which task.both_orders reads", "what the examples have is known here"),
    ("finetune", "fine-tuned with task.lm_weight", "the verb that sees both first"),
    ("finetune", "see --max_lost", "what is lost is known after the data was read"),
    ("finetune", "expected room for a question", "its length is known with the questions"),
    ("finetune", "<unk>", "how much of the text the vocabulary lacks is known here first"),
    ("export", "unigram model with", "prepare and finetune warn of it"),
    ("convert", "", "the other format lacks it, which only --to says"),
    ("score|generate|export", "denois", "a denoising model gives no likelihood of a text"),
    ("score|generate|export", "permutation", "as above"),
    ("score|generate|export|embed", "network", "what a network of another kind cannot do"),
)
# With a wild configuration, the verbs that see it first.
_FIRST = ("vocab", "prepare")


def is_allowed(journey: dict, error, config) -> bool:
    """Whether a verb may refuse a journey."""
    words = error.sentence
    if error.verb in ("finetune", "evaluate", "predict") and is_doubtful(journey["task"]):
        return True  # A file that a reader may refuse.
    for verb, pattern, _ in ALLOWED:
        if re.fullmatch(verb, error.verb) and re.search(pattern, words, re.IGNORECASE):
            return True
    if journey["is_wild"] or journey["vocabulary"]["model_has_more"] < 0:
        first = ("finetune",) if journey["route"] == "task" else _FIRST
        return error.verb in first
    return False
