"""Rows come back whole: with all columns of the input unchanged, or the run is refused."""

import json

from official.xlnet import cli
from tests.helpers.wrong_input import run

# Values of several types of JSON.
COLUMNS = {"id": ["a7", "b1"], "amount": [3, None], "nested": [[1, {"x": 0.5}], "ü"], "ok": [1, 0]}


def check_rows_come_back(verb, capfd, folder, *flags, rows, dropped=()):
    """Runs a verb on rows, then with each column that it has written, which it refuses by name.

    Args:
      verb: name of the verb.
      capfd: pytest's fixture.
      folder: folder for files.
      flags: other flags of the verb.
      rows: rows of the texts, at least two.
      dropped: columns of the input that the verb does not write.

    Returns:
      The names of the columns that were written.
    """
    columns = [
        dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)
    ]
    rows = [{**row, **more} for row, more in zip(rows, columns, strict=True)]
    source, output = folder / "rows.jsonl", folder / "out.jsonl"
    arguments = [verb, f"--input={source}", f"--output={output}", *flags]

    def write(rows):
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))

    write(rows)
    assert cli.main(arguments) == 0
    capfd.readouterr()
    answers = [json.loads(line) for line in output.read_text().splitlines()]
    kept = [{key: row[key] for key in row if key not in dropped} for row in rows]
    found = [{key: row[key] for key in row if key in kept[0]} for row in answers]
    assert [row for n, row in enumerate(found) if n == 0 or row != found[n - 1]] == kept
    written = sorted({key for row in answers for key in row} - {*rows[0]})
    output.unlink()
    for name in written:
        write([rows[0], {**rows[1], name: "theirs"}])
        outcome = run(capfd, *arguments)
        assert outcome.status == 2, name
        assert f"row 2: expected a table without the columns that are written, got {name}" in (
            outcome.err
        )
        assert not output.exists()
    return written
