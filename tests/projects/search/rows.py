"""Rows in tables of the core's tests, see `tests/helpers/package/of_projects.py`."""


def _folder(rng, path, folder):
    """A folder with a run, as only such a one is re-ranked."""
    from tests.helpers.task_corpora import sentence  # It has rows of projects itself.

    path.mkdir(exist_ok=True)
    pairs = [(query, document) for query in range(3) for document in range(4)]
    files = {
        "queries.tsv": [f"q{n}\t{sentence(rng)}" for n in range(3)],
        "documents.tsv": [f"d{n}\t{sentence(rng)}" for n in range(4)],
        "qrels": [f"q{q} 0 d{d} {(q + d) % 4}" for q, d in pairs],
        "run": [f"q{q} Q0 d{d} 0 {-d} run" for q, d in pairs],
    }
    for name, lines in files.items():
        (path / name).write_text("\n".join(lines) + "\n")
    return str(path)


DATA_OF_EFFECTS = {"ranking": _folder}
EFFECTS = [("units", "task.rerank_depth=2 task.name=ranking")]
