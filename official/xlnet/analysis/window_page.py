"""HTML page of a window, with the attention masks of figures 4 to 6 of the paper.

Figure 4 of the paper shows which tokens one token can attend to under a factorization order: on the
page, hovering over a token highlights them. Figures 5 and 6 show the attention masks of the content
and the query stream: on the page, as images of the complete window with its memory, and as a
close-up around the first targets. The page draws them from the order and the targets.
"""

from __future__ import annotations

import html
import json
import string

from official.xlnet.analysis.record_windows import Window
from official.xlnet.tokenization.tokenizer import WORD_START

_CLASS = {"reuse": "reuse", "A": "a", "B": "b", "": "mark"}


def as_html(window: Window) -> str:
    """Renders a window as a self-contained interactive HTML page.

    Args:
      window: the window.

    Returns:
      The HTML.
    """
    facts = {
        "direction": "reversed" if window.is_reversed else "forward",
        "B": "follows A" if window.is_next else "is a random segment",
        "window id": window.window_id,
        "epoch": window.epoch,
        "preceding context in the document": f"{window.context_length} tokens",
        "context in memory": f"{window.memory_length} tokens",
        "targets": int(window.is_target.sum()),
    }
    return _PAGE.substitute(
        title=html.escape(window.title),
        facts="".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts.items()),
        tokens="".join(_token(window, i) for i in range(len(window.pieces))),
        text="".join(
            f"<h3>{name}</h3><p class='{_CLASS[name]}'>{html.escape(text)}</p>"
            for name, text in window.text.items()
        ),
        order=json.dumps(window.order.tolist()),
        is_target=json.dumps(window.is_target.tolist()),
        memory=window.memory_length,
    )


def _token(window: Window, i: int) -> str:
    if window.is_document_end[i]:
        return f"<span class='end' data-i='{i}'>¶ document</span><br>"
    piece = html.escape(window.pieces[i].replace(WORD_START, " "))
    classes, label = _CLASS[window.part[i]], ""
    if window.is_target[i]:
        classes, label = f"{classes} target", f"<sub>{window.order[i]}</sub>"
    space = " " if piece.startswith(" ") or window.is_reversed else ""
    shown = piece.strip() or "␣"
    return f"{space}<span class='{classes}' data-i='{i}' tabindex='0'>{shown}{label}</span>"


_PAGE = string.Template("""\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>$title</title>
<style>
body { font: 16px/1.7 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c1c1c; background: #fff; }
h1 { font-size: 1.25rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } h3 { margin-bottom: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; margin: 0; }
dt { color: #555; } dd { margin: 0; }
.reuse { background: #eeeeee; } .a { background: #d6ebf5; } .b { background: #fbe9c6; }
.mark { background: #e6d6ef; } .end { color: #8a1c1c; font-size: .8rem; }
#tokens span { padding: .05rem .1rem; border-radius: .2rem; }
.target { outline: 2px solid #1c1c1c; font-weight: 600; } sub { font-weight: 400; }
#tokens.on span { opacity: .25; } #tokens.on span.seen { opacity: 1; }
#tokens.on span.here { opacity: 1; outline: 3px solid #b3261e; }
figure { margin: 1rem 0; } figcaption { color: #555; }
canvas { image-rendering: pixelated; max-width: 100%; min-width: min(100%, 28rem); }
.dots { border-collapse: collapse; margin: 1rem 0; } .dots caption { text-align: left; }
.dots td { width: 1.6rem; height: 1.4rem; text-align: center; }
.dots td.on::after { content: "●"; color: #29619f; }
.dots td.off::after { content: "·"; color: #999; }
.dots th { font-weight: 400; text-align: right; padding-right: .4rem; font-size: .85rem; }
.dots tr:first-child th { writing-mode: vertical-rl; text-align: left; padding: .2rem 0; }
</style></head><body>
<h1>$title</h1>
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
<figure><canvas id="content" aria-label="Content mask of the window"></canvas>
<figcaption>Content stream: order of the column ≤ order of the row (figure 5).</figcaption></figure>
<figure><canvas id="query" aria-label="Query mask of the window"></canvas>
<figcaption>Query stream, at targets only: order of the column &lt; order of the row
(figure 6).</figcaption></figure>
<h2>Around the first targets</h2>
<div id="close-up"></div>
<h2>Text in reading order</h2>
$text
<script>
const order = $order;
const isTarget = $is_target;
const memory = $memory;
const masks = {
  content: (i, j) => order[j] <= order[i],
  query: (i, j) => isTarget[i] && order[j] < order[i],
};
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
function draw(name) {
  const canvas = document.getElementById(name);
  [canvas.width, canvas.height] = [memory + order.length, order.length];
  const image = canvas.getContext("2d").createImageData(canvas.width, canvas.height);
  order.forEach((_, i) => {
    const row = order.map((_, j) => masks[name](i, j) ? [41, 97, 163] : [242, 242, 242]);
    const seen = order.some((_, j) => masks[name](i, j)) ? [140, 173, 209] : [242, 242, 242];
    [...Array(memory).fill(seen), ...row].forEach((color, x) => {
      image.data.set([...color, 255], 4 * (i * canvas.width + x));
    });
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}
function closeUp(name) {
  const target = isTarget.includes(true) ? isTarget.indexOf(true) : order.length;
  const first = Math.max(0, Math.min(target - 2, order.length - 14));
  const shown = spans.slice(first, first + 14).map((span) => span.firstChild.textContent);
  const table = document.createElement("table");
  const heads = (row, ...texts) => texts.forEach((text) => {
    row.append(Object.assign(document.createElement("th"), {textContent: text}));
  });
  table.className = "dots";
  table.createCaption().textContent = `$${name} stream`;
  heads(table.insertRow(), "", ...shown);
  shown.forEach((text, n) => {
    const i = first + n;
    if (name === "query" && !isTarget[i]) return;
    const row = table.insertRow();
    heads(row, `$${text} $${order[i]}`);
    shown.forEach((_, m) => {
      row.insertCell().className = masks[name](i, first + m) ? "on" : "off";
    });
  });
  document.getElementById("close-up").append(table);
}
for (const name of ["content", "query"]) {
  draw(name);
  closeUp(name);
}
box.addEventListener("mouseover", show);
box.addEventListener("focusin", show);
box.addEventListener("mouseleave", () => box.classList.remove("on"));
</script>
</body></html>
""")
