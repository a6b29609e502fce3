"""HTML page of a window, with the attention masks of figures 4 to 6 of the paper.

Figure 4 of the paper shows which tokens one token can attend to under a factorization order: on the
page, hovering over a token highlights them. Figures 5 and 6 show the attention masks of the content
and the query stream: on the page, as images of the complete window with its memory, and as a
close-up around the first targets.
"""

from __future__ import annotations

import base64
import html
import io
import json
import string

import matplotlib.image
import numpy as np

from official.xlnet.projects.pictures.html_page import html_page
from official.xlnet.projects.pictures.record_windows import Window
from official.xlnet.tokenization.special_tokens import WORD_START

_CLOSE_UP = 14  # Number of tokens in the close-up.
_BEFORE_TARGET = 2  # Number of tokens in the close-up before the first target.
_RGB = {
    "hidden": (0.95, 0.95, 0.95),
    "seen": (0.16, 0.38, 0.64),
    "memory": (0.55, 0.68, 0.82),
}
_CLASS = {"reuse": "reuse", "A": "a", "B": "b", "": "mark"}


def as_html(window: Window) -> str:
    """Renders a window as a self-contained interactive HTML page.

    Args:
      window: the window.

    Returns:
      The HTML.
    """
    direction = "reversed" if window.is_reversed else "forward"
    facts = {
        "direction": direction,
        "B": "follows A" if window.is_next else "is a random segment",
        "window id": window.window_id,
        "epoch": window.epoch,
        "preceding context in the document": f"{window.context_length} tokens",
        "context in memory": f"{window.memory_length} tokens",
        "targets": int(window.is_target.sum()),
    }
    body = _BODY.substitute(
        facts="".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts.items()),
        tokens="".join(_token(window, i) for i in range(len(window.pieces))),
        text="".join(
            f"<h3>{name}</h3><p class='{_CLASS[name]}'>{html.escape(text)}</p>"
            for name, text in window.text.items()
        ),
        order=json.dumps(window.order.tolist()),
        is_target=json.dumps(window.is_target.tolist()),
        content=_picture(window.masks.content, window),
        query=_picture(window.masks.query, window),
        close_up=_close_up(window),
    )
    return html_page(window.title, _STYLE, body)


def _token(window: Window, i: int) -> str:
    piece = html.escape(window.pieces[i].replace(WORD_START, " "))
    classes = _CLASS[window.part[i]]
    label = ""
    if window.is_target[i]:
        classes += " target"
        label = f"<sub>{window.order[i]}</sub>"
    if window.is_document_end[i]:
        return f"<span class='end' data-i='{i}'>¶ document</span><br>"
    space = " " if piece.startswith(" ") or window.is_reversed else ""
    shown = piece.strip() or "␣"
    return f"{space}<span class='{classes}' data-i='{i}' tabindex='0'>{shown}{label}</span>"


def _picture(mask: np.ndarray, window: Window) -> str:
    """Image of a mask, with the memory to its left, as a data URL."""
    num_tokens = len(mask)
    memory = np.zeros((num_tokens, window.memory_length), bool)
    memory[mask.any(axis=1)] = True
    colors = np.where(mask[..., np.newaxis], _RGB["seen"], _RGB["hidden"])
    memory_colors = np.where(memory[..., np.newaxis], _RGB["memory"], _RGB["hidden"])
    file = io.BytesIO()
    matplotlib.image.imsave(file, np.concatenate([memory_colors, colors], axis=1), format="png")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def _close_up(window: Window) -> str:
    """Both masks of a few tokens around the first target, as tables of dots."""
    num_tokens = len(window.order)
    first_target = int(np.flatnonzero(window.is_target).min(initial=num_tokens))
    start = max(0, first_target - _BEFORE_TARGET)
    places = range(min(start, num_tokens - _CLOSE_UP), num_tokens)[:_CLOSE_UP]
    masks = window.masks
    return _dots(window, places, masks.content, "content") + _dots(
        window, places, masks.query, "query"
    )


def _dots(window: Window, places: range, mask: np.ndarray, name: str) -> str:
    head = "".join(f"<th>{_piece(window, j)}</th>" for j in places)
    rows = ""
    for i in places:
        if name == "query" and not window.is_target[i]:
            continue
        dots = ""
        for j in places:
            dots += "<td class='on'></td>" if mask[i, j] else "<td class='off'></td>"
        rows += f"<tr><th>{_piece(window, i)} <small>{window.order[i]}</small></th>{dots}</tr>"
    return (
        f"<table class='dots'><caption>{name} stream</caption>"
        f"<tr><td></td>{head}</tr>{rows}</table>"
    )


def _piece(window: Window, i: int) -> str:
    return html.escape(window.pieces[i].replace(WORD_START, "") or "␣")


_STYLE = """\
h3 { margin-bottom: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; margin: 0; }
dt { color: #555; } dd { margin: 0; }
.reuse { background: #eeeeee; } .a { background: #d6ebf5; } .b { background: #fbe9c6; }
.mark { background: #e6d6ef; } .end { color: #8a1c1c; font-size: .8rem; }
#tokens span { padding: .05rem .1rem; border-radius: .2rem; }
.target { outline: 2px solid #1c1c1c; font-weight: 600; } sub { font-weight: 400; }
#tokens.on span { opacity: .25; } #tokens.on span.seen { opacity: 1; }
#tokens.on span.here { opacity: 1; outline: 3px solid #b3261e; }
figure { margin: 1rem 0; } figcaption { color: #555; }
img { image-rendering: pixelated; max-width: 100%; min-width: min(100%, 28rem); }
.dots { border-collapse: collapse; margin: 1rem 0; } .dots caption { text-align: left; }
.dots td { width: 1.6rem; height: 1.4rem; text-align: center; }
.dots td.on::after { content: "●"; color: #29619f; }
.dots td.off::after { content: "·"; color: #999; }
.dots th { font-weight: 400; text-align: right; padding-right: .4rem; font-size: .85rem; }
.dots tr:first-child th { writing-mode: vertical-rl; text-align: left; padding: .2rem 0; }
small { color: #555; }
"""
_BODY = string.Template("""\
<dl>$facts</dl>
<h2>Tokens</h2>
<p><span class="reuse">reuse part</span> <span class="a">A</span> <span class="b">B</span>
<span class="mark">SEP, CLS</span> <span class="target">target<sub>position</sub></span>. The number
of a target is its position in the factorization order; all other tokens except SEP and CLS are
context. Hover over a target to highlight the tokens from which it is predicted (figure 4 of the
paper), or over another token to highlight those its content stream can attend to.</p>
<p id="tokens">$tokens</p>
<h2>Attention masks</h2>
<p>Rows are queries and columns are keys; dark cells can be attended to, and the lighter columns
at the left are the memory. The first half never attends to the second.</p>
<figure><img src="$content" alt="Content mask of the window">
<figcaption>Content stream: order of the column ≤ order of the row (figure 5).</figcaption></figure>
<figure><img src="$query" alt="Query mask of the window">
<figcaption>Query stream, at targets only: order of the column &lt; order of the row
(figure 6).</figcaption></figure>
<h2>Around the first targets</h2>
$close_up
<h2>Text in reading order</h2>
$text
<script>
const order = $order;
const isTarget = $is_target;
const box = document.getElementById("tokens");
const spans = [...box.querySelectorAll("[data-i]")];
function show(event) {
  const i = event.target.closest("[data-i]")?.dataset.i;
  box.classList.toggle("on", i !== undefined);
  if (i === undefined) return;
  for (const span of spans) {
    const j = span.dataset.i;
    span.classList.toggle("seen", order[j] < order[i] || (!isTarget[i] && order[j] === order[i]));
    span.classList.toggle("here", j === i);
  }
}
box.addEventListener("mouseover", show);
box.addEventListener("focusin", show);
box.addEventListener("mouseleave", () => box.classList.remove("on"));
</script>""")
