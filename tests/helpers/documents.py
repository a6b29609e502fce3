"""Code blocks of the README and the documentation, for the tests that check and run them.

A block is what stands between ```LANGUAGE and ```. Every block says its language; `sh` and `python`
blocks are run, at a tiny scale, in the order of the document. A block after a line
`<!-- test: parse -->` is only checked: what it needs, or its time, is not to be had in a test. One
after `<!-- test: tf_keras -->` is run with tf_keras only.
Sections of other documents that a document includes are part of it.

`rendered` is what a browser makes of a page.
"""

import dataclasses
import functools
import html
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import textwrap

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def pages_of_projects():
    """{name of a page in docs: its project}, from the navigation of the site."""
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return dict(re.findall(r": (\w+\.md)  # project: (\w+)$", navigation, re.MULTILINE))


def pages_of_deleted_projects():
    """Names of pages of projects that are not there."""
    projects = ROOT / "official/xlnet/projects"
    return {page for page, name in pages_of_projects().items() if not (projects / name).exists()}


_DELETED = {ROOT / "docs" / name for name in pages_of_deleted_projects()}
_PAGES = sorted({*(ROOT / "docs").glob("*.md")} - _DELETED)
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *_PAGES]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
LANGUAGES = ("sh", "python", "text", "yaml", "json", "proto")
_FENCE = re.compile(r"^(\s*)```(.*)$")
_SECTION = re.compile(r'^ *--8<-- "(\S+\.md):(\w+)"$', re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Block:
    """One block.

    Attributes:
      language: what stands after the backquotes.
      code: its lines.
      line: number of its first line.
      is_run: whether it is run, or only checked.
      needs_tf_keras: whether it is run with tf_keras only.
    """

    language: str
    code: str
    line: int
    is_run: bool
    needs_tf_keras: bool = False


@functools.cache
def blocks(path: pathlib.Path) -> tuple[Block, ...]:
    """The blocks of a document, in order."""
    found, lines, start, language, before = [], [], None, "", ""
    text = _SECTION.sub(_section, path.read_text(encoding="utf-8"))
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if fence and start is None:
            start, language, lines = number + 1, fence[2].strip(), []
        elif fence:
            is_run = before != "<!-- test: parse -->"
            code = textwrap.dedent("\n".join(lines))  # In a tab of the site.
            needs_tf_keras = before == "<!-- test: tf_keras -->"
            found.append(Block(language, code, start, is_run, needs_tf_keras))
            start, before = None, ""
        elif start is not None:
            lines.append(line)
        elif line.strip():
            before = line.strip()
    assert start is None, f"{path}: the block of line {start} has no end"
    return tuple(found)


def _section(line: re.Match) -> str:
    """The section of another document that a line includes."""
    text = (ROOT / line[1]).read_text(encoding="utf-8")
    return text.partition(f"[start:{line[2]}] -->\n")[2].partition("<!-- --8<-- [end:")[0]


def commands(block: Block) -> list[list[str]]:
    """The words of every command of a shell block; comments are dropped."""
    joined = block.code.replace("\\\n", " ")
    split = (shlex.split(line, comments=True) for line in joined.splitlines())
    return [words for words in split if words]


def rendered(page, path):
    """The elements of a page after its scripts have run, as HTML; skips without a browser.

    Args:
      page: the HTML.
      path: the file to write it to.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("no browser is installed")
    path.write_text(page, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000"]
    command = [browser, *options, "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def overflowing(page, path, width=390):
    """The elements that reach out of a page in a window of a width, but for what scrolls in it.

    Args:
      page: the HTML, without scripts of its own.
      path: the file to write to.
      width: width of the window, in pixels; 390 is that of a phone.
    """
    script = """
        const page = document.getElementById("page").contentDocument;
        const inside = ([...page.querySelectorAll("body *")]
          .filter((x) => x.getBoundingClientRect().right > WIDTH && !x.closest(".wide, pre")));
        const all = inside.map((x) => x.outerHTML.slice(0, 99));
        if (page.documentElement.scrollWidth > WIDTH) all.push("the page scrolls");
        document.getElementById("found").textContent = JSON.stringify(all);
    """.replace("WIDTH", str(width))
    frame = f"<iframe id=page style='width:{width}px;height:9999px' frameborder=0 srcdoc="
    frame += f'"{html.escape(page)}"></iframe><pre id=found></pre>'
    waiting = f"<script>onload = () => {{ {script} }};</script>"
    shown = rendered(f"<!DOCTYPE html>{frame}{waiting}", path)
    return json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', shown, re.S)[1]))
