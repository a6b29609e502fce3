"""Former addresses of pages of the site, each with the page and section that has its text today.

MkDocs calls `on_post_build` (`hooks` in mkdocs.yml), which writes a page at each former address
that leads a browser on. A page that is merged or renamed gets a row here; a test compares the rows
with the pages that Git has recorded.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

# {former page: {section: its address today}}; "" is the beginning, and all sections not listed.
FORMER = {
    "accelerators": {
        "": "performance.md#tpus-and-gpus",
        "largest-fine-tuning-batches-on-16-gb": (
            "performance.md#largest-fine-tuning-batches-on-16-gb"
        ),
        "tpus": "performance.md#steps-on-tpus",
        "gpus": "performance.md#steps-on-gpus",
        "what-each-recipe-needs": "performance.md#what-each-recipe-needs",
        "slices-of-a-tpu": "performance.md#slices-of-a-tpu",
        "kernels-for-each-device": "performance.md#kernels-for-each-device",
    },
    "attention_length": {"": "experiments.md#attention-length"},
    "learning": {
        "": "experiments.md",
        "memory": "experiments.md#memory",
        "fine-tuning-without-settings": "experiments.md#not-measured",
        "few-labels": "experiments.md#not-measured",
        "intervals": "experiments.md#intervals",
    },
    "minimal_pairs": {
        "": "experiments.md#minimal-pairs",
        "agreement-from-text-to-figure": "experiments.md#minimal-pairs",
        "three-paradigms-of-blimp": "experiments.md#minimal-pairs",
    },
    "model_garden": {
        "": "keras.md#model-garden",
        "training-with-train_lib": "keras.md#training-with-train_lib",
        "the-gardens-bert-models": "keras.md#the-gardens-bert-models",
    },
    "modules": {
        "": "library.md",
        "pre-training": "library.md#objectives",
        "fine-tuning": "library.md#fine-tuning-tasks",
    },
    "onnx": {"": "serving.md#onnx"},
    "rivals": {"": "networks.md"},
    "systems": {"": "differences.md#systems"},
    "tutorial": {"": "quickstart.md#in-python", "notebooks": "quickstart.md#notebooks"},
    "universal": {
        "": "networks.md#universal-transformer",
        "adaptive-halting": "networks.md#adaptive-halting",
        "steps-of-a-text": "networks.md#steps-of-a-text",
        "limits": "networks.md#limits",
    },
    "vocabulary_extension": {"": "domain.md#extend-the-vocabulary"},
    # Sections of the reference.
    "api_command_line": {"": "commands.md"},
    "api_extensions": {"": "extending.md"},
    "api_functions_for_plain_texts": {"": "library.md"},
    "api_model": {"": "library.md#layers-and-optimizers"},
    "api_tokenization_and_data": {"": "library.md"},
    "api_training_and_evaluation": {"": "library.md"},
}

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>This page has moved</title>
<meta name="robots" content="noindex">
<link rel="canonical" href="{address}">
<script>
  const addresses = {addresses};
  location.replace(addresses[decodeURIComponent(location.hash.slice(1))] ?? addresses[""]);
</script>
<noscript><meta http-equiv="refresh" content="0; url={address}"></noscript>
<p>This page has moved: <a href="{address}">{address}</a></p>
</html>
"""


def on_post_build(config: Any) -> None:
    """Writes a page at each former address; MkDocs calls it."""
    site = pathlib.Path(config.site_dir)
    for name, sections in FORMER.items():
        addresses = {section: _built(address, site) for section, address in sections.items()}
        page = _PAGE.format(address=addresses[""], addresses=json.dumps(addresses))
        (site / f"{name}.html").write_text(page, encoding="utf-8")


def _built(address: str, site: pathlib.Path) -> str:
    """Returns the address of `PAGE.md#SECTION` on the site; the home if there is no such page."""
    page, mark, section = address.partition("#")
    page = f"{page.removesuffix('.md')}.html"
    return f"{page}{mark}{section}" if (site / page).exists() else "index.html"
