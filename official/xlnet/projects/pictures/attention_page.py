"""Attention maps as an interactive HTML page."""

from __future__ import annotations

import base64
import html
import json
import string
from collections.abc import Sequence

import numpy as np

from official.xlnet.projects.pictures.attention_maps import AttentionMaps
from official.xlnet.projects.pictures.attention_patterns import (
    PRESENT,
    StrongestHead,
    find_patterns,
)
from official.xlnet.projects.pictures.html_page import html_page
from official.xlnet.tokenization.special_tokens import WORD_START


def as_html(maps: AttentionMaps, layers: Sequence[int], heads: Sequence[int]) -> str:
    """Renders attention maps as a self-contained interactive HTML page.

    Args:
      maps: the attention maps.
      layers: indices of the layers to include.
      heads: indices of the heads to include.

    Returns:
      The HTML.
    """
    # The square root makes small weights visible; one byte per weight keeps the page small.
    levels = np.round(255 * np.sqrt(maps.weights[np.ix_(layers, heads)])).astype(np.uint8)
    pieces = [piece.replace(WORD_START, " ") for piece in maps.pieces]
    data = {
        "layers": list(layers),
        "heads": list(heads),
        "tokens": len(pieces),
        "levels": base64.b64encode(levels.tobytes()).decode(),
    }
    body = _BODY.substitute(
        tokens="\n".join(_token(i, piece) for i, piece in enumerate(pieces)),
        gallery="".join(_gallery_row(match) for match in find_patterns(maps.weights)),
        data=json.dumps(data),
    )
    return html_page(f"Attention of {len(pieces)} tokens", _STYLE, body)


def _token(i: int, piece: str) -> str:
    text = html.escape(piece.strip()) or "␣"
    return f"<span data-i='{i}' tabindex='0'>{text}</span>"


def _gallery_row(match: StrongestHead) -> str:
    presence = f"{match.num_heads} heads" if match.strength >= PRESENT else "in no head"
    return (
        f"<tr><td>{match.pattern}</td><td>{presence}</td><td>{match.strength:.2f}</td><td><button "
        f"data-layer='{match.layer}' data-head='{match.head}'>layer {match.layer}, "
        f"head {match.head}</button></td></tr>"
    )


_STYLE = """\
#tokens span { border: 1px solid #ccc; border-radius: .2rem; cursor: default; padding: .1rem; }
#tokens span.here { outline: 2px solid #1c1c1c; }
#heads { display: flex; flex-wrap: wrap; gap: .5rem; }
#heads button { border: 2px solid transparent; background: none; padding: .1rem; font: inherit;
  font-size: .75rem; cursor: pointer; }
#heads button[aria-pressed="true"] { border-color: #b3261e; }
canvas { image-rendering: pixelated; display: block; }
#heads canvas { width: 6rem; height: 6rem; } #map { width: 100%; }
#labelled { display: grid; grid-template-columns: max-content minmax(0, 36rem); gap: .2rem; }
#rows, #columns { display: grid; grid-auto-rows: 1fr; font-size: .7rem; line-height: 1; }
#rows { align-items: center; text-align: right; }
#columns { grid-auto-columns: 1fr; grid-auto-flow: column; }
#columns i { writing-mode: vertical-rl; transform: rotate(180deg); justify-self: center; }
#rows i, #columns i { font-style: normal; } [hidden] { display: none !important; }
"""
_BODY = string.Template("""\
<p>Select a head, then hover over a token: the darker another token, the higher its attention
weight. In an attention map, rows are queries and columns are keys. Colors show the square root of
the weight.</p>
<p id="tokens">$tokens</p>
<div id="labelled"><div></div><div id="columns"></div><div id="rows"></div>
<canvas id="map" aria-label="Attention map of the selected head"></canvas></div>
<h2>Heads</h2>
<div id="heads"></div>
<h2>Attention patterns of figures 2 and 3 of the paper</h2>
<table><tr><th>pattern</th><th>present</th><th>strength</th><th>strongest head</th></tr>
$gallery</table>
<script>
const data = $data;
const bytes = Uint8Array.from(atob(data.levels), (c) => c.charCodeAt(0));
const size = data.tokens;
const spans = [...document.querySelectorAll("#tokens span")];
const map = document.getElementById("map");
let offset = 0;
let token = 0;
for (const box of [document.getElementById("rows"), document.getElementById("columns")]) {
  box.hidden = size > 64;  // Too small to read.
  for (const span of spans) {
    box.append(Object.assign(document.createElement("i"), {textContent: span.textContent.trim()}));
  }
}
function level(start, i, j) { return bytes[start + i * size + j]; }
function draw(canvas, start) {
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  const image = context.createImageData(size, size);
  for (let k = 0; k < size * size; k++) {
    const dark = bytes[start + k];
    image.data.set([255 - dark * 0.85, 255 - dark, 255 - dark * 0.4, 255], 4 * k);
  }
  context.putImageData(image, 0, 0);
}
function show() {
  draw(map, offset);
  spans.forEach((span, j) => {
    const share = level(offset, token, j) / 255;
    span.style.background = `rgba(41, 97, 159, $${share})`;
    span.style.color = share > 0.6 ? "#fff" : "inherit";
    span.classList.toggle("here", j === token);
  });
}
function choose(button) {
  for (const other of document.querySelectorAll("#heads button")) {
    other.setAttribute("aria-pressed", other === button);
  }
  offset = Number(button.dataset.offset);
  show();
}
data.layers.forEach((layer, l) => data.heads.forEach((head, n) => {
  const button = document.createElement("button");
  const start = (l * data.heads.length + n) * size * size;
  button.dataset.offset = start;
  button.id = `head-$${layer}-$${head}`;
  const canvas = document.createElement("canvas");
  draw(canvas, start);
  button.append(canvas, `layer $${layer}, head $${head}`);
  button.addEventListener("click", () => choose(button));
  document.getElementById("heads").append(button);
}));
for (const button of document.querySelectorAll("table button")) {
  const {layer, head} = button.dataset;
  const shown = document.getElementById(`head-$${layer}-$${head}`);
  button.disabled = shown === null;
  button.addEventListener("click", () => choose(shown));
}
for (const event of ["mouseover", "focusin"]) {
  document.getElementById("tokens").addEventListener(event, ({target}) => {
    if (target.dataset.i === undefined) return;
    token = Number(target.dataset.i);
    show();
  });
}
map.addEventListener("mousemove", ({offsetY}) => {
  token = Math.min(size - 1, Math.max(0, Math.floor(offsetY / map.clientHeight * size)));
  show();
});
choose(document.querySelector("#heads button"));
</script>""")
