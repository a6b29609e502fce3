"""The table at the end: what was run, refused and covered, and how to repeat a violation."""

import collections
import itertools

from tests.property.journeys.draws.configuration import IMPORTANT, keys
from tests.property.journeys.draws.drawing import draw

_TASK_ROUTES = ("task", "all")


def table(results: list[dict]) -> str:
    """The results of journeys as Markdown.

    Args:
      results: `number`, `is_short`, `violation`, `known`, `counts` and `shrunken` of each journey.
    """
    counts: collections.Counter[str] = collections.Counter()
    for result in results:
        counts.update(result["counts"])
    wrong = [r for r in results if r["violation"] and not r["known"]]
    known = [r for r in results if r["known"]]
    lines = [
        f"{len(results)} journeys, {len(wrong)} with a violation, {len(known)} with a known one"
    ]
    lines.append(f"  long: {sum(not r['is_short'] for r in results)}")
    lines += [f"  {kind}: {number}" for kind, number in _of(counts, "route ")]
    lines.append("verbs (times, seconds)")
    seconds = dict(_of(counts, "seconds "))
    lines += [f"  {verb}: {n}, {seconds.get(verb, 0):.0f} s" for verb, n in _of(counts, "verb ")]
    lines += _section(counts, "interrupted", "interrupted ") + _section(
        counts, "files", "read file"
    )
    lines += _section(counts, "refusals", "refused ") + _section(
        counts, "advice followed", "advice: "
    )
    lines += _coverage([draw(r["number"], r["is_short"]) for r in results])
    for result in known:
        lines.append(f"KNOWN {result['number']} ({result['known']}): {result['violation'][:120]}")
    for result in wrong:
        change = f" --change='{result['shrunken']}'" if result.get("shrunken") else ""
        short = f" --long_every={int(not result['is_short'])}"
        command = f"python -m tests.property.journeys --only={result['number']}{short}{change}"
        lines += [f"VIOLATION {result['violation'][:600]}", f"  {command}"]
    return "\n".join(lines)


def _of(counts: collections.Counter, prefix: str) -> list[tuple[str, float]]:
    found = [(k.removeprefix(prefix), v) for k, v in counts.items() if k.startswith(prefix)]
    return sorted(found, key=lambda item: (-item[1], item[0]))


def _section(counts: collections.Counter, title: str, prefix: str) -> list[str]:
    return [title, *(f"  {number} {words}" for words, number in _of(counts, prefix))]


def _coverage(journeys: list[dict]) -> list[str]:
    """How many keys, and pairs of values of important ones, were drawn where they are read."""
    drawn: set[str] = set()
    pairs: set = set()
    for journey in journeys:
        if journey["route"] == "files":
            drawn |= {"task.name", "task.label_column", "task.text_columns"}
            continue
        read = dict(journey["config"])
        if journey["route"] not in _TASK_ROUTES:
            read = {key: value for key, value in read.items() if not key.startswith("task.")}
        drawn |= {*read, "model.vocab_size", "model.embedding_rows"}
        if journey["route"] in _TASK_ROUTES:
            drawn |= {"task.name", "task.labels", "task.text_columns", "task.label_column"}
        values = {key: read.get(key, options[0]) for key, options in IMPORTANT.items()}
        if journey["route"] not in _TASK_ROUTES:
            values = {key: value for key, value in values.items() if not key.startswith("task.")}
        pairs |= set(itertools.combinations(sorted(values.items()), 2))
    every = [
        pair
        for a, b in itertools.combinations(sorted(IMPORTANT), 2)
        for pair in itertools.product(
            [(a, v) for v in IMPORTANT[a]], [(b, v) for v in IMPORTANT[b]]
        )
    ]
    covered = sum(pair in pairs for pair in every)
    missing = ", ".join(sorted(set(keys()) - drawn))
    return [
        f"configuration: {len(drawn)} of {len(keys())} keys",
        f"  {covered} of {len(every)} pairs of values of important keys",
        f"  not drawn: {missing}",
    ]
