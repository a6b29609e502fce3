"""Answers are resumed by a call whose every argument, and whatever it reads, is the same."""

import dataclasses
import shutil

from official.xlnet.jobs.file_scoring import ScoringCall
from official.xlnet.jobs.identity import identity_of

# Another value of each argument but the files.
OTHERS = {str: "other", int: 7, bool: True, tuple: ("other",), type(None): "other"}


def test_each_argument_and_whatever_is_read_counts(world, tmp_path):
    names = ("rows.txt", "rows.jsonl", "rows.txt.gz", "qrels/rows.txt")
    (tmp_path / "qrels").mkdir()
    for name in names:
        (tmp_path / name).write_text('{"text": "one"}\n')
    output = str(tmp_path / "scores.jsonl")
    call = ScoringCall(
        model=world.pretrained,
        text=(),
        input=str(tmp_path / names[0]),
        output=output,
        order="left_to_right",
        num_orders=8,
        seed=0,
        context=None,
        given="left",
        whole_given=False,
    )
    identity = identity_of(call, 256)
    assert identity == identity_of(dataclasses.replace(call, output=f"{output}l"), 256)
    changed = [dataclasses.replace(call, input=str(tmp_path / name)) for name in names[1:]]
    for field in dataclasses.fields(call):
        if field.name not in ("model", "input", "output"):
            other = OTHERS[type(getattr(call, field.name))]
            changed.append(dataclasses.replace(call, **{field.name: other}))
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / names[0]).write_text('{"text": "two"}\n')
    changed.append(dataclasses.replace(call, input=str(tmp_path / "more" / names[0])))
    identities = [identity_of(other, 256) for other in changed] + [identity_of(call, 255)]
    assert len(identities) == len(changed) + 1 >= 11
    assert all(other != identity for other in identities)


def test_a_copy_of_the_files_of_a_call_resumes_it(world, tmp_path):
    """As the local copies of files in a bucket, which are elsewhere in every call."""
    calls = []
    for folder in ("one", "two"):
        path = tmp_path / folder / "texts" / "rows.txt"
        path.parent.mkdir(parents=True)
        path.write_text("one\n")
        model = shutil.copytree(world.pretrained, tmp_path / folder / "model")
        fields = {field.name: None for field in dataclasses.fields(ScoringCall)}
        fields |= {"model": str(model), "input": str(path), "output": str(path.parent / "scores")}
        calls.append(ScoringCall(**fields))
    assert identity_of(calls[0], 3) == identity_of(calls[1], 3) is not None
