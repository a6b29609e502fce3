"""`report.html` of a pre-training run."""

from __future__ import annotations

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.pretraining_dataset import Records
from official.xlnet.projects.pictures.html_page import html_table
from official.xlnet.projects.pictures.report_page import (
    HELD_OUT_LOSS,
    all_settings,
    command_lines,
    report_page,
    training_curves,
    value_text,
)
from official.xlnet.projects.pictures.scalars import read_scalars
from official.xlnet.runtime.pages import PretrainingRun, register_page
from official.xlnet.runtime.perplexity import perplexity


@register_page("pretraining", "report.html")
def pretraining_page(run: PretrainingRun) -> str:
    """Returns the page of a pre-training run.

    Args:
      run: the run; its model fills blanks in held-out texts.
    """
    directory = run.directory
    sections = {
        "Result": _result(run),
        "Data": _splits(run.records),
        "Training": training_curves(directory, HELD_OUT_LOSS, "held-out loss", run.unigram_loss),
    }
    if run.model is not None:
        # Imported here, as filling blanks needs much that pre-training does not.
        from official.xlnet.projects.pictures.filled_blanks import filled_blanks

        blanks = filled_blanks(run.model, run.records, directory)
        if blanks:
            sections["Blanks"] = html_table(("text", "hidden", "candidates"), blanks)
    sections["Settings"] = all_settings(XLNetConfig.load(directory))
    sections["Use"] = command_lines(
        ["evaluate", f"--model={directory}", f"--data={run.records.path}"],
        ["generate", f"--model={directory}", "--text=The ____ of the people."],
        ["finetune", f"--init_from={directory}", "--train=train.tsv", "--output=runs/task"],
    )
    loss, step = value_text(run.result["loss"]), run.result["step"]
    return report_page(f"Pre-training: loss {loss} at step {step:,}", sections)


def _result(run: PretrainingRun) -> str:
    """Table of the results of the run, and of its last evaluation."""
    rows = [[name.replace("_", " "), value_text(value)] for name, value in run.result.items()]
    held_out = read_scalars(run.directory, HELD_OUT_LOSS)
    if held_out:
        loss = held_out[max(held_out)]
        rows.append(["held-out loss", value_text(loss)])
        rows.append(["held-out perplexity", value_text(perplexity(loss))])
    if run.unigram_loss:
        rows.append(["loss of unigrams", value_text(run.unigram_loss)])
    return html_table(("metric", "model"), rows)


def _splits(records: Records) -> str:
    """Table of the sizes of the splits of a data set."""
    rows = []
    for name, split in records.manifest.splits.items():
        rows.append((name, f"{split.documents:,}", f"{split.tokens:,}", f"{split.windows:,}"))
    return html_table(("split", "documents", "tokens", "windows"), rows)
