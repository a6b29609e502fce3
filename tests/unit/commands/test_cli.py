"""The command line: help, exit statuses, one sentence for wrong input, a traceback for a bug."""

import errno
import importlib
import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from unittest import mock

import pytest
from absl import logging as absl_logging

from official import xlnet
from official.xlnet import cli
from official.xlnet.api.verbs import GROUPS
from official.xlnet.commands.declarations import declaration
from official.xlnet.commands.error_messages import user_message
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import VERBS
from official.xlnet.files.json_files import json_line
from official.xlnet.runtime.progress import Progress

VERB = '''
import errno
import os
from collections.abc import Sequence
from typing import Annotated

from official.xlnet.api.verbs import register_verb
from official.xlnet.files.arguments import COMMAS
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf

CAUSES = ("", "bug", "config", "data", "missing", "full", "tf_full", "tf_memory", "interrupt",
          "tf_missing", "tf_open_files", "tmpdir")


@register_verb("adder")
@public(summands="numbers")
def add(
    numbers: Annotated[Sequence[int], COMMAS], fail: Annotated[str, OneOf(CAUSES)] = ""
):
    """Adds numbers, for this test.

    Args:
      numbers: what to add.
      fail: how to fail.

    Example:
      $ xlnet adder --numbers=1,2
    """
    if fail == "bug":
        raise ValueError("a bug of ours")
    if fail == "config":
        from official.xlnet.configs.experiment import XLNetConfig

        XLNetConfig.from_dict({"model": {"d_modle": 3}}, source="my.yaml")
    if fail == "data":
        from official.xlnet.errors import DataError

        raise DataError("lane 3 is broken:\\n expected 5, got \\x9b\\u202e")
    if fail == "missing":
        open("no/such/file")
    if fail == "full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "out.bin")
    if fail == "tf_full":
        import tensorflow as tf

        message = "{{function_node a}} my run/ckpt.data; No space left on device [Op:SaveV2]"
        raise tf.errors.ResourceExhaustedError(None, None, message)
    if fail == "tf_open_files":
        import tensorflow as tf

        message = "{{node a}} my run/lane.tfrecord; Too many open files [Op:IteratorGetNext]"
        raise tf.errors.ResourceExhaustedError(None, None, message)
    if fail == "tf_missing":
        import tensorflow as tf

        tf.train.Checkpoint(v=tf.Variable(1.0)).write("/dev/null/a/ckpt")
    if fail == "tmpdir":
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")
    if fail == "tf_memory":
        import tensorflow as tf

        message = "{{node b}} OOM when allocating tensor with shape[7,11] and type float"
        raise tf.errors.ResourceExhaustedError(None, None, message)
    if fail == "interrupt":
        raise KeyboardInterrupt
    print("something on the way")
    return {"sum": float(sum(numbers))}
'''


@pytest.fixture(autouse=True)
def verb(tmp_path, monkeypatch):
    (tmp_path / "adder_of_test.py").write_text(VERB)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    importlib.import_module("adder_of_test")
    yield
    VERBS.pop("adder", None)
    sys.modules.pop("adder_of_test", None)


def test_help_names_every_verb_and_its_flags(capsys):
    assert cli.main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("  adder             Adds numbers, for this test.")
    assert lines[place - 1 :: 2][:2] == ["Others:", "      xlnet adder --numbers=1,2"]
    for name in VERBS.names():
        declared = declaration(name)
        assert declared.summary.endswith("."), name
        assert all(x.text for x in declared.parameters.values()), name
        assert name == "adder" or declared.verb.group in GROUPS, name
    assert cli.main(["adder", "--help"]) == 0
    out = capsys.readouterr().out
    assert "--numbers=N\n      What to add. (required)\n" in out and "Adds numbers" in out


def test_flags_do_not_need_docstrings():
    for verb in ("score", "finetune"):
        program = [sys.executable, "-OO", "-m", "official.xlnet.cli", verb, "--help"]
        listed = re.findall(r"^  --\S+", subprocess.check_output(program, text=True), re.M)
        program.remove("-OO")
        with_texts = subprocess.check_output(program, text=True)
        assert listed == re.findall(r"^  --\S+", with_texts, re.M) and len(listed) > 9


def test_last_line_of_output_is_json(capsys):
    assert cli.main(["adder", "--numbers=1,2,4"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"sum": 7.0}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ader"], "xlnet: unknown verb 'ader'; did you mean 'adder'?"),
        (["adder"], "xlnet adder: --numbers is required"),
        (["adder", "--numbers=1", "--fial=bug"], "unknown flag --fial; did you mean '--fail'?"),
        (["adder", "--numbers=1", "stray"], "unexpected argument 'stray'"),
        (["adder", "--numbers=1", "--fail=loud"], "--fail: expected one of"),
        (
            ["adder", "--numbers=1", "--fail=config"],
            "xlnet adder: my.yaml: unknown key 'model.d_modle'; did you mean 'model.d_model'?",
        ),
        (
            ["adder", "--numbers=1", "--fail=data"],
            r"lane 3 is broken: expected 5, got \u009b\u202e",
        ),
        (["adder", "--numbers=1", "--fail=missing"], "No such file or directory: 'no/such/file'"),
        (["adder", "--numbers=1", "--fail=full"], f"{os.strerror(errno.ENOSPC)}: 'out.bin'"),
        (["adder", "--numbers=1", "--fail=tf_missing"], f"{os.strerror(errno.ENOTDIR)}: '/dev/nul"),
        (["adder", "--numbers=1", "--fail=tmpdir"], "['/tmp']; set TMPDIR to a directory that"),
        (
            ["adder", "--numbers=1", "--fail=tf_full"],
            "No space left on device: 'my run/ckpt.data'\n",
        ),
        (
            ["adder", "--numbers=1", "--fail=tf_open_files"],
            "Too many open files: 'my run/lane.tfrecord'\n",
        ),
        (
            ["adder", "--numbers=1", "--fail=tf_memory"],
            "out of memory for an array of shape[7,11]; use a smaller model, batch or input\n",
        ),
    ],
)
def test_wrong_input_is_one_sentence_and_status_2(arguments, sentence, capsys):
    assert cli.main(arguments) == 2
    out, error = capsys.readouterr()
    assert sentence in error and len(error.splitlines()) == 1 and out == ""


@pytest.mark.parametrize("directory", ["served", "a b/served", "/mnt/x.y"])
@pytest.mark.parametrize("rest", ["", "/variables/variables_temp/part-0.data.tempstate58"])
def test_an_unfinished_export_is_told_by_its_directory(directory, rest):
    path = f"{directory}/.incomplete-c2aa894d71964931a0a8793009849912{rest}"
    reason = os.strerror(errno.ENOSPC)
    of_tensorflow = type("Error", (Exception,), {"__module__": "tensorflow.errors"})
    for error in (OSError(errno.ENOSPC, reason, path), of_tensorflow(f"{path}; {reason}")):
        assert user_message(error, "export") == f"{reason}: {directory!r}"


def test_a_bug_has_a_traceback_and_an_interrupt_none(capsys):
    assert cli.main(["adder", "--numbers=1", "--fail=bug"]) == 1
    assert cli.main(["adder", "--numbers=1", "--fail=interrupt"]) == 130
    error = capsys.readouterr().err
    assert error.startswith("Traceback") and error.count("Traceback") == 1
    assert error.endswith("ValueError: a bug of ours\n\nxlnet adder: interrupted\n")


def test_the_home_directory_in_a_path_behind_an_equals_sign(tmp_path, monkeypatch, capsys):
    """Shells leave `--output=~/scores` as it is, and a folder named `~` would be made here."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cli.main(["score", "--model=~/none", "--text=~/none", "--input=~/none"]) == 2
    assert f"'{tmp_path}/none'" in capsys.readouterr().err
    assert cli.main(["vocab", "--input=~/a.txt,~/b.txt", "--output=~/o"]) == 2
    assert f"'{tmp_path}/a.txt'" in capsys.readouterr().err


# An input that would be replaced by what is made of it.
READERS = [
    ("predict", "--model=m", "--input=texts.npy"),
    ("embed", "--model=m", "--input=texts.npy"),
    ("score", "--model=m", "--input=texts.npy"),
    ("generate", "--model=m", "--input=texts.npy"),
]


@pytest.mark.parametrize("arguments", READERS, ids=lambda arguments: " ".join(arguments[:2]))
def test_an_input_is_not_replaced(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    (tmp_path / "texts.npy").write_bytes(b"what would be lost\n")
    (tmp_path / "link").symlink_to("texts.npy")
    for output in ("texts.npy", "./texts.npy", "link"):
        assert cli.main([*arguments, f"--output={output}"]) == 2
        assert "--output: expected another file than the input" in capsys.readouterr().err
    assert (tmp_path / "texts.npy").read_bytes() == b"what would be lost\n"


def test_help_tokenizers_and_records_do_not_wait_for_tensorflow(world, tmp_path):
    """`prepare` imports it after the records are written, to count the targets of some windows."""
    model = shutil.copytree(world.vocab, tmp_path / "m")
    XLNetConfig.load(world.config).save(str(model))
    verbs = [name for name in VERBS.names() if name != "adder"]
    program = (
        "import sys; from official.xlnet import cli\n"
        f"for verb in {verbs}: assert cli.main([*verb.split(), '--help']) == 0\n"
        "assert not {'matplotlib', 'tensorflow', 'numpy', 'pandas'} & set(sys.modules)\n"
        "from official import xlnet; from official.xlnet.api.prepare import prepare\n"
        f"tokenizer = xlnet.load_tokenizer({str(model)!r})\n"
        "assert tokenizer.decode(tokenizer.encode('the water')) == 'the water'\n"
        f"config = xlnet.XLNetConfig.load({world.config!r})\n"
        f"arguments = [{world.text!r}], {world.vocab!r}, config, {str(tmp_path / 'data')!r}\n"
        "assert prepare(*arguments, num_workers=1)['windows'] > 0\n"
        "assert not {'tensorflow', 'tf_keras', 'apache_beam'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("streams", "status", "said"),
    [
        ("--help | true; exit ${PIPESTATUS[0]}", 141, ""),
        ("--help >/dev/full", 2, "xlnet: No space left on device: standard output\n"),
        ("--help >&-", 0, ""),
        ("nothing 2>&-", 2, ""),
        ("nothing 2>/dev/full", 2, ""),
    ],
)
def test_a_standard_output_that_is_full_broken_or_closed(streams, status, said):
    command = f"{sys.executable} -m official.xlnet.cli {streams}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (status, said)
    assert "unknown verb" not in done.stdout


# Whatever goes to the log: progress, warnings of absl and of Python, a traceback, of C++.
TALK = """
import contextlib, os, sys, warnings
from absl import logging
from official import xlnet
from official.xlnet import cli
from official.xlnet.configs.registry import VERBS
from official.xlnet.runtime.progress import Progress, counting, elapsed_time

def talk(rest):
    file = open(sys.argv[1], "wb")
    for number in range(9):
        Progress(sys.stderr).show("text")
        Progress(sys.stderr).log_line("text " * 9999)
        logging.warning("text")
        warnings.warn(f"text {number}")
        with counting(True, "text", 9, "B") as add, elapsed_time("text", 1e-4):
            add(1)
    with contextlib.suppress(OSError):
        os.write(2, b"text")
    assert not os.fstat(file.fileno()).st_size
    return {"done": 1} if rest else 1 / 0

cli._values = lambda verb, rest: {"rest": rest}
VERBS["vocab"].function = talk
sys.exit(cli.main())
"""


@pytest.mark.parametrize("log", ["2>/dev/full", "2>&-", "2>&- <&-", "2>/dev/null"])
def test_a_log_that_is_full_or_closed_ends_no_work(log, tmp_path):
    (tmp_path / "main.py").write_text(TALK.replace("sys.argv[1]", repr(str(tmp_path / "out"))))
    for rest, status in (("x", 0), ("", 1)):
        command = f"{sys.executable} {tmp_path}/main.py vocab {rest} {log}"
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (status, "")
        assert done.stdout == '{"done": 1}\n' * (not status)


def test_a_broken_pipe_of_a_worker_is_said(monkeypatch, capsys):
    monkeypatch.setattr(cli, "_values", mock.Mock(side_effect=BrokenPipeError(32, "Broken pipe")))
    assert cli.main(["prepare"]) == 2
    assert "Broken pipe" in capsys.readouterr().err


def test_messages_of_libraries_are_errors_alone_and_ours_are_plain():
    """This package may be installed beside them."""
    shown = {}
    for package in ("pandas", "official/xlnet"):
        for level in (logging.WARNING, logging.ERROR):
            path = f"/x/site-packages/{package}/a.py"
            record = logging.LogRecord("absl", level, path, 3, "text", (), None)
            if cli._is_for_users(record):
                shown[package, level] = cli._Printable().format(record)
    ours = {("official/xlnet", level): "text" for level in (logging.WARNING, logging.ERROR)}
    library = shown.pop(("pandas", logging.ERROR))
    assert shown == ours and library.startswith("E") and library.endswith("a.py:3] text")


def test_what_steers_a_terminal_is_shown_escaped(capsys):
    """And a name with a line end forges no line of the log."""
    absl_logging.warning("%s: 3 rows are left out", "b\x9bc\nxlnet: error.txt")
    assert cli.main(["convert", "--source=\x1b[2J\u202e", "--output=x"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first == r"b\u009bc\u000axlnet: error.txt: 3 rows are left out"
    assert second.isprintable()
    Progress(progress := io.StringIO()).log_line("a\x9b\nb\r: text")
    assert progress.getvalue() == "a\\u009b\\u000ab\\u000d: text\n"
    print(json_line({"text": "\u2066\x7f"}))
    assert capsys.readouterr().out == '{"text": "\\u2066\\u007f"}\n'


@pytest.mark.parametrize("has_gpu", [False, True])
def test_tensorflow_is_quiet_where_there_is_no_gpu(has_gpu):
    """Also for programs that import the package, and with its own messages shown.

    With a GPU, its messages are shown from `info` on.
    """
    level = "os.environ.get('TF_CPP_MIN_LOG_LEVEL')"
    program = (
        f"import glob, os; glob.glob = lambda path: [path] * ({has_gpu} and 'nvidia' in path);"
        f"from official import xlnet; print({level});"
        f"from official.xlnet import cli; cli._set_verbosity('info'); print({level})"
    )
    environment = {n: x for n, x in os.environ.items() if n != "TF_CPP_MIN_LOG_LEVEL"}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["3", "0" if has_gpu else "3"]


@pytest.mark.slow
@pytest.mark.skipif(xlnet._HAS_GPU, reason="there is a GPU")
def test_nothing_is_said_of_a_gpu_that_is_not_there():
    program = "from official.xlnet import Scorer; import tensorflow; tensorflow.range(3)"
    environment = {n: x for n, x in os.environ.items() if n != "TF_CPP_MIN_LOG_LEVEL"}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert "cuInit" not in run.stderr
