"""Tasks of others define and call methods by their names of 1.0.0."""

from official.xlnet.configs.key_marks import MAY_CHANGE, OF_HEAD
from official.xlnet.configs.task import TaskConfig
from official.xlnet.tasks.task import Task
from official.xlnet.tasks.text_task import TextTask


class Base(TextTask):
    """A task of this package, with the names of today."""

    @classmethod
    def complete_settings(cls, config, examples):
        config.append((cls.__name__, len(examples)))

    def error_and_probability(self, example, prediction):
        return abs(example - prediction), 0.5


class Former(Base):
    """A task of another package, with the former names."""

    @classmethod
    def complete(cls, config, examples):
        super().complete(config, examples)
        config.append("former")

    def judge(self, example, prediction):
        error, probability = super().judge(example, prediction)
        return error, probability / 2

    def finish(self, examples, predictions):
        self.threshold = 0.25

    def join(self, members):
        self.members = members


def test_a_subclass_with_former_names_is_called_and_calls_its_base():
    config = []
    Former.complete_settings(config, ["a", "b"])
    assert config == [("Former", 2), "former"]
    task = object.__new__(Former)
    assert task.error_and_probability(3.0, 1.0) == (2.0, 0.25)
    task.tune_settings([], [])
    task.average_tuned_settings(["a"])
    assert task.threshold == 0.25 and task.members == ["a"]
    # `training.finetuning` asks whether a task tunes settings.
    assert Former.tune_settings is not Task.tune_settings
    assert Base.tune_settings is Task.tune_settings


def test_a_task_of_today_is_called_by_former_names():
    config = []
    Base.complete(config, ["a"])
    assert config == [("Base", 1)]
    assert object.__new__(Base).judge(3.0, 1.0) == (2.0, 0.5)


def test_settings_of_others_have_methods_and_marks_by_their_former_names():
    class Former(TaskConfig):
        of_head = (*TaskConfig.of_head, "num_buckets")
        may_change = ("patience", "max_windows")
        of_new_runs = {**TaskConfig.of_new_runs, "pooling": "max"}

        def named(self, row, with_labels, where):
            return {**super().named(row, with_labels, where), "is_named": True}

        def files(self, source):
            for name, part, settings in super().files(source):
                yield name, [*part, "more"], settings

        def target(self):
            return (super().target()[0], 7.0)

        def orders(self, num_texts):
            return [*super().orders(num_texts), [0]]

        def columns_of_parts(self):
            return {**super().columns_of_parts(), "other": ()}

        def auxiliary_losses(self):
            return {**super().auxiliary_losses(), "mine": 0.5}

    settings = Former()
    assert settings.values_by_column("a", False, "row") == {"text": "a", "is_named": True}
    assert list(settings.parts_of_source(["a"])) == [("", ["a", "more"], settings)]
    assert settings.label_mean_and_scale() == (0.0, 7.0)
    assert settings.text_orders(2) == [[0, 1], [0]]
    assert settings.text_columns_of_parts() == {"": ("text",), "other": ()}
    assert settings.auxiliary_loss_weights() == {"mine": 0.5}
    assert Former.marked_keys(OF_HEAD) == ["labels", "summary", "num_buckets"]
    assert Former.marked_keys(MAY_CHANGE) == ["label_type", "patience", "max_windows"]
    assert Former.values_of_new_runs() == {"pooled_segments": "all", "pooling": "max"}


def test_settings_of_others_take_files_by_the_former_name():
    class Former(TaskConfig):
        def take(self, parts):
            super().take(parts)
            self.max_windows = 7

    settings = Former()
    settings.complete_from_files([])
    assert settings.max_windows == 7
