"""Lists the public names, the flags of the verbs and the formats of text in pages of docs/.

    python -m tools.api_page

The list of names has the first paragraph of docstrings. On the site, verbs have all their flags.
Tests verify that all are up to date.
MkDocs calls the functions `on_…` (`hooks` in mkdocs.yml): the site has a page for each section,
which mkdocstrings makes of signatures and docstrings, and the names in the list link to them.
Modules are parsed, not imported, except `official.xlnet`, whose names come first.
"""

from __future__ import annotations

import ast
import dataclasses
import pathlib
import re
import textwrap
from collections.abc import Iterable
from typing import Any

from data_prep.corpus.formats import TFDS_PREFIX
from official import xlnet
from official.xlnet.commands.declarations import COMMON, Parameter, declaration
from official.xlnet.commands.help import flag_help
from official.xlnet.configs.registry import TEXT_FORMATS, VERBS
from official.xlnet.files.schema import Range
from official.xlnet.projects import PROJECTS

ROOT = pathlib.Path(__file__).parents[1]
PAGE = ROOT / "docs/library.md"
COMMANDS = ROOT / "docs/commands.md"
FORMATS_PAGE = ROOT / "docs/data_preparation.md"

# {section: other names that programs and extensions use}.
SECTIONS = {
    "Configuration": (
        "official.xlnet.configs.model.ModelConfig",
        "official.xlnet.configs.data.DataConfig",
        "official.xlnet.configs.objective.ObjectiveConfig",
        "official.xlnet.configs.objective.Stage",
        "official.xlnet.configs.training.TrainingConfig",
        "official.xlnet.configs.task.TaskConfig",
        "official.xlnet.tasks.settings.LabelConfig",
        "official.xlnet.tasks.settings.QueryConfig",
        "official.xlnet.tasks.settings.CandidatesConfig",
        "official.xlnet.tasks.settings.AnswerModuleConfig",
        "official.xlnet.tasks.classification.ClassificationConfig",
        "official.xlnet.tasks.multiple_choice.ChoiceConfig",
        "official.xlnet.projects.multitask.settings.MultitaskConfig",
        "official.xlnet.tasks.question_answering.AnswerConfig",
        "official.xlnet.tasks.ranking.RankingConfig",
        "official.xlnet.projects.survey.settings.ErnieObjectiveConfig",
        "official.xlnet.projects.survey.settings.BertModelConfig",
        "official.xlnet.projects.survey.settings.UniversalModelConfig",
        "official.xlnet.projects.survey.settings.StochasticAnswerConfig",
    ),
    "Errors": (
        "official.xlnet.errors.XLNetError",
        "official.xlnet.errors.ConfigError",
        "official.xlnet.errors.ArgumentTypeError",
        "official.xlnet.errors.DataError",
        "official.xlnet.errors.DivergedError",
        "official.xlnet.errors.PeerLostError",
        "official.xlnet.errors.PreemptedError",
        "official.xlnet.errors.StoppedError",
    ),
    "Formats of text": (
        "data_prep.corpus.formats.TextFormat",
        "data_prep.corpus.formats.TextReading",
    ),
    "Layers and optimizers": (
        "official.xlnet.modeling.networks.encoder.Encoder",
        "official.xlnet.modeling.networks.recurrent_memory.Memory",
        "official.xlnet.modeling.layers.attention.attention",
        "official.xlnet.modeling.layers.feed_forward.FeedForward",
        "official.xlnet.modeling.layers.lm_head.LMHead",
        "official.xlnet.modeling.layers.relative_position.sinusoids",
        "official.xlnet.training.optimization.Optimizer",
        "official.xlnet.training.optimization.AdamW",
        "official.xlnet.training.optimization.LAMB",
        "official.xlnet.training.optimization.Muon",
        "official.xlnet.training.schedules.WarmupThenDecay",
    ),
    "Objectives": (
        "official.xlnet.modeling.objectives.base.ObjectiveBatch",
        "official.xlnet.modeling.objectives.auxiliary.AuxiliaryObjective",
        "official.xlnet.modeling.objectives.permutation_lm.permutation_objective",
        "official.xlnet.modeling.objectives.denoising.denoising_objective",
        "official.xlnet.modeling.objectives.causal_lm.causal_objective",
        "official.xlnet.modeling.objectives.permutation_sampling.sample_targets_and_order",
    ),
    "Fine-tuning tasks": (
        "official.xlnet.data.examples.TextExample",
        "official.xlnet.tasks.multiple_choice.ChoiceExample",
        "official.xlnet.tasks.question_answering.QuestionExample",
        "official.xlnet.tasks.ranking.RankingExample",
        "official.xlnet.tasks.token_classification.TaggedExample",
        "official.xlnet.tasks.task.Task",
        "official.xlnet.modeling.heads.base.Head",
        "official.xlnet.data.reading.Reading",
        "official.xlnet.projects.survey.stochastic_answer.StochasticAnswerHead",
        "official.xlnet.projects.survey.text_baselines.text_baselines",
        "official.xlnet.configs.finetuning_defaults.default_learning_rate",
        "official.xlnet.configs.finetuning_defaults.default_epochs",
        "official.xlnet.configs.finetuning_defaults.default_batch_size",
    ),
    "Tests": (
        "official.xlnet.testing.check_task",
        "official.xlnet.testing.check_objective",
        "official.xlnet.testing.check_network",
    ),
    "Scoring and generation": (
        "official.xlnet.inference.score.Score",
        "official.xlnet.projects.any_order.words.Word",
        "official.xlnet.projects.any_order.pairs.pair_metrics",
        "official.xlnet.projects.any_order.candidates.Candidate",
    ),
    "Serving": ("official.xlnet.serving.client.endpoint.Endpoint",),
    "Model Garden": (
        "official.xlnet.projects.garden.bert_style_encoder.bert_style_encoder",
        "official.xlnet.projects.garden.pretraining.xlnet_pretraining",
    ),
    "Looking inside": (
        "official.xlnet.projects.pictures.record_windows.read_window",
        "official.xlnet.projects.pictures.attention_maps.AttentionMaps",
        "official.xlnet.projects.pictures.attention_patterns.find_patterns",
        "official.xlnet.projects.pictures.masks.Masks",
    ),
}
_INTRODUCTION = """\
<!-- Written by `python -m tools.api_page`; edit the docstrings instead. -->

# API

Names of `official.xlnet` are imported with `from official import xlnet`, all others from their
modules. Signatures and docstrings are on the site that `make docs` builds, and in Python's `help`.
[Concepts](concepts.md) explains the terms.
"""

_COMMANDS_INTRODUCTION = """\
<!-- Written by `python -m tools.api_page`; edit the docstrings instead. -->

# Commands

The verbs of the command `xlnet`. Their flags are in `xlnet VERB --help`, and on this page of the
site that `make docs` builds.
"""

Definition = ast.FunctionDef | ast.ClassDef


def main() -> None:
    """Writes all."""
    PAGE.write_text(names_page(), encoding="utf-8")
    COMMANDS.write_text(commands_page(), encoding="utf-8")
    text = FORMATS_PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- formats: python -m tools.api_page -->\n", "<!-- end of formats -->"
    before, _, rest = text.partition(begin)
    text = "".join([before, begin, formats(), end, rest.partition(end)[2]])
    FORMATS_PAGE.write_text(text, encoding="utf-8")


def formats() -> str:
    """Returns the table of the formats of text."""
    lines = [
        "| `--format` | files | a document is | read in parts | compressed |",
        "|---|---|---|---|---|",
    ]
    for name, module in list(TEXT_FORMATS.modules.items()):
        if module.startswith("projects."):  # Its own page has it.
            continue
        form = TEXT_FORMATS[name]
        kinds = [f"`{ending}`" for ending in form.endings]
        kinds += [f"begin with `{form.mark.decode()}`"] if form.mark else []
        files = ", ".join(kinds) or "others"
        if not form.is_file:
            name, files = "", f"`{TFDS_PREFIX}NAME:SPLIT`"
        document = " ".join((form.__doc__ or "").split()).removesuffix(".")
        facts = [form.before or form.parts, not form.parts]
        words = ["yes" if fact else "no" for fact in facts]
        cells = [f"`{name}`" if name else "", files, document[0].lower() + document[1:], *words]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def commands_page(is_whole: bool = False) -> str:
    """Returns the contents of the page of verbs, in the order of `xlnet --help`.

    Args:
      is_whole: whether to have all flags, and what the help says of each.
    """
    parts = [_COMMANDS_INTRODUCTION]
    for verb in VERBS.names():
        declared = declaration(verb)
        text = declared.sections[""] if is_whole else declared.sections[""].partition("\n\n")[0]
        flags = [f"{_list(declared.flags)}\n"] if is_whole and declared.flags else []
        parts += [f"## xlnet {verb}\n", f"{text}\n", *flags]
    parts.append(f"## All verbs\n\n{_list(COMMON)}")
    return "\n".join(parts) + "\n"


def _list(flags: Iterable[Parameter]) -> str:
    """Returns a list of flags with all that the help says, except ranges."""
    lines = []
    for flag in flags:
        rules = tuple(rule for rule in flag.rules if not isinstance(rule, Range))
        name, *text = flag_help(dataclasses.replace(flag, rules=rules)).split("\n")
        lines.append(f"- `{name.strip()}`: {' '.join(' '.join(text).split())}")
    return "\n".join(lines)


def names_page(is_whole: bool = False) -> str:
    """Returns the contents of the list.

    Args:
      is_whole: whether names of modules have their first paragraphs, too.
    """
    parts = [_INTRODUCTION]
    for title, found in entries().items():
        is_public = title == "official.xlnet"
        named = {
            node.name if is_public else f"{module}.{node.name}": node for module, node in found
        }
        explained = [name for name in named if is_whole or _has_sentence(name, is_public)]
        lines = [f"- `{name}`: {first_line(named[name])}" for name in explained]
        others = ", ".join(f"`{name}`" for name in named if name not in explained)
        if others and is_public:
            lines.append(f"- {others}: decorators that [register parts](extending.md)")
        elif others:
            lines.append(textwrap.fill(others, 100, break_on_hyphens=False))
        parts += [f"## {title}\n", "\n".join(lines) + "\n"]
    return "\n".join(parts)


def _has_sentence(name: str, is_public: bool) -> bool:
    """Whether a name has its sentence in the short list."""
    return is_public and not name.startswith("register_")


def entries() -> dict[str, list[tuple[str, Definition]]]:
    """Returns {section: [(module, definition)]}."""
    found: dict[str, list[tuple[str, Definition]]] = {"official.xlnet": []}
    for name in sorted(set(xlnet.__all__) - {"__version__"}, key=str.lower):
        found["official.xlnet"].append(find(str(xlnet._module_of(name)), name))
    for title, names in SECTIONS.items():
        places = [name.rsplit(".", 1) for name in names if _is_here(name)]
        found[title] = [find(*place) for place in places if place[1] not in xlnet.__all__]
    return found


def _is_here(name: str) -> bool:
    """Returns whether a name is in the core, or in a project that has not been removed."""
    _, _, in_projects = name.partition("official.xlnet.projects.")
    return not in_projects or in_projects.partition(".")[0] in PROJECTS


def on_config(config: Any) -> Any:
    """Shows the version at the end of each page; MkDocs calls it."""
    config.copyright = f"XLNet for TensorFlow {xlnet.__version__}, Apache License 2.0"
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds a page for each section to the site; MkDocs calls it."""
    from mkdocs.structure.files import File, InclusionLevel  # Where the site is built only.

    for title, found in entries().items():
        named = [f"::: {module}.{node.name}" for module, node in found]
        name, text = re.sub("[^a-z]", "_", title.lower()), "\n\n".join([f"# {title}", *named])
        level = InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, f"api_{name}.md", content=text, inclusion=level))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Adds the rest of the two lists, and links of names; MkDocs calls it."""
    if page.file.src_uri == COMMANDS.name:
        return commands_page(is_whole=True)
    if page.file.src_uri != PAGE.name:
        return markdown
    places = {node.name: f"{module}.{node.name}" for module, node in entries()["official.xlnet"]}

    def link(row: re.Match) -> str:
        name = row[1].rpartition(".")[2]
        return f"- [`{name}`][{places.get(row[1], row[1])}]:"

    return re.sub(r"^- `([\w.]+)`:", link, names_page(is_whole=True), flags=re.MULTILINE)


def parse(module: str) -> ast.Module:
    """Parses a module of this repository."""
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def is_overload(node: Definition) -> bool:
    """Returns whether a definition only declares one signature of several."""
    return any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list)


def find(module: str, name: str) -> tuple[str, Definition]:
    """Finds a name that a module defines or imports; returns the defining module and the node."""
    for node in parse(module).body:
        if isinstance(node, Definition) and node.name == name and not is_overload(node):
            return module, node
        if not isinstance(node, ast.ImportFrom):
            continue
        if name in [alias.asname or alias.name for alias in node.names]:
            return find(str(node.module), name)
    raise ValueError(f"{module} neither defines nor imports {name}")


def first_line(node: Definition) -> str:
    """Returns the first paragraph of a docstring as Markdown."""
    text = (ast.get_docstring(node) or "").partition("\n\n")[0]
    return re.sub("`[^`]*`|<", lambda m: m[0] if m[0] != "<" else "&lt;", " ".join(text.split()))


if __name__ == "__main__":
    main()
