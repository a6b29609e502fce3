"""Classes of several data sets, which begin with the name of theirs."""

import pytest

from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import DataError
from tests.unit.tasks.test_labels import EXAMPLES, MISSING, config_of

KIND = TASKS["multitask"]


def test_classes_that_are_listed_keep_their_order_where_other_data_sets_list_none():
    config = config_of("multitask")
    listed = ("tone/z", "tone/b", "tone/a")
    examples = [EXAMPLES["multitask"](label) for label in "ab"]
    examples += [TextExample(x, (x,), x, "own") for x in "ba"]
    config.task.labels, config.task.subtasks = listed, ("tone", "own")
    KIND.complete_settings(config, examples)
    assert config.task.labels == (*listed, "own/a", "own/b")
    for wrong in ("good", "stars/good"):
        config.task.labels = (*listed, wrong)
        with pytest.raises(DataError, match=f"task.labels: expected NAME/CLASS .*, got {wrong}"):
            KIND.complete_settings(config, examples)


@pytest.mark.parametrize(("labels", "hidden"), MISSING)
def test_what_data_sets_write_for_a_missing_label_is_refused(labels, hidden):
    examples = [EXAMPLES["multitask"](label) for label in labels]
    with pytest.raises(DataError, match=f"expected classes, got {hidden} beside .* missing label"):
        KIND.complete_settings(config_of("multitask"), examples)
