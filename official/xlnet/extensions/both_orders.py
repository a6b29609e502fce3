"""GPT's input of similarity tasks: a pair of texts is read in both orders, `task.both_orders`."""

from __future__ import annotations

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.validation import require
from official.xlnet.errors import require_data
from official.xlnet.tasks.classification.settings import ClassificationConfig


@register_settings("task")
class BothOrdersConfig(ClassificationConfig):
    """A pair of texts may be read in both orders.

    Attributes:
      both_orders: whether texts A and B are read as `A | B` and as `B | A`, as in GPT's similarity
        tasks: logits = W · (summary(A | B) + summary(B | A)) / 2 + b.
    """

    both_orders: bool = False

    def orders(self, num_texts):
        (order,) = super().orders(num_texts)
        return [order, order[::-1]] if self.both_orders else [order]

    def check(self) -> None:
        super().check()
        needed = {"long_texts": "truncate", "pooling": "mean", "answer_module": "summary"}
        for key, expected in needed.items() if self.both_orders else ():
            got = getattr(self, key)
            require(got == expected, f"task.{key}", f"{expected} with task.both_orders", got)

    def check_examples(self, examples):
        super().check_examples(examples)
        found = {len(example.texts) for example in examples}
        require_data(
            not self.both_orders or found == {2},
            "training data",
            "two texts in each example, which task.both_orders reads in both orders",
            ", ".join(map(str, sorted(found))),
        )
