"""The command line: help, exit statuses, one sentence for wrong input, a traceback for a bug."""

import errno
import importlib
import io
import json
import os
import resource
import shutil
import subprocess
import sys

import pytest
from absl import logging as absl_logging

from official.xlnet import cli, commands
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.files.json_files import print_json
from official.xlnet.runtime.progress import Progress

VERB = '''
"""Adds numbers, for this test.

Example:
xlnet adder --numbers=1,2
"""

import errno
import os

from official.xlnet.commands import REQUIRED, choice, comma_list, flag_table

CAUSES = ["", "bug", "config", "data", "missing", "full", "tf_full", "tf_memory", "interrupt"]
FLAGS = flag_table(
    comma_list("numbers", REQUIRED, "What to add."), choice("fail", "", CAUSES, "How to fail.")
)


def run():
    if FLAGS.fail == "bug":
        raise ValueError("a bug of ours")
    if FLAGS.fail == "config":
        from official.xlnet.configs.experiment import XLNetConfig

        XLNetConfig.from_dict({"model": {"d_modle": 3}}, source="my.yaml")
    if FLAGS.fail == "data":
        from official.xlnet.errors import DataError

        raise DataError("lane 3 is broken:\\n expected 5, got 7")
    if FLAGS.fail == "missing":
        open("no/such/file")
    if FLAGS.fail == "full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "out.bin")
    if FLAGS.fail == "tf_full":
        import tensorflow as tf

        message = "{{function_node a}} my run/ckpt.data; No space left on device [Op:SaveV2]"
        raise tf.errors.ResourceExhaustedError(None, None, message)
    if FLAGS.fail == "tf_memory":
        import tensorflow as tf

        message = "{{node b}} OOM when allocating tensor with shape[7,11] and type float"
        raise tf.errors.ResourceExhaustedError(None, None, message)
    if FLAGS.fail == "interrupt":
        raise KeyboardInterrupt
    print("something on the way")
    return {"sum": sum(map(float, FLAGS.numbers))}
'''


@pytest.fixture(autouse=True)
def verb(tmp_path, monkeypatch):
    (tmp_path / "adder.py").write_text(VERB)
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    yield
    sys.modules.pop("official.xlnet.commands.adder", None)


def test_help_names_every_verb_with_its_line_and_imports_none(capsys):
    assert cli.main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("  adder             Adds numbers, for this test.")
    assert lines[place - 1 : place + 2] == [
        "Others:",
        lines[place],
        "      xlnet adder --numbers=1,2",
    ]
    assert "official.xlnet.commands.adder" not in sys.modules


def test_every_real_verb_opens_with_a_sentence_and_is_in_a_group():
    for name, docstring in cli._verbs().items():
        assert docstring.splitlines()[0].endswith("."), name
        assert name == "adder" or name.split()[0] in sum(cli._GROUPS.values(), ()), name


def test_help_of_a_verb_shows_its_flags(capsys):
    assert cli.main(["adder", "--help"]) == 0
    out = capsys.readouterr().out
    assert "--numbers: What to add." in out
    assert "Adds numbers" in out


def test_last_line_of_output_is_json(capsys):
    assert cli.main(["adder", "--numbers=1,2,4"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"sum": 7.0}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ader"], "xlnet: unknown verb 'ader'; did you mean 'adder'?"),
        (["adder"], "xlnet adder: --numbers is required"),
        (["inspect", "recods"], "unknown verb 'inspect recods'; did you mean 'inspect records'?"),
        (["adder", "--numbers=1", "--fial=bug"], "line flag 'fial'. Did you mean: fail ?"),
        (["adder", "--numbers=1", "stray"], "unexpected argument 'stray'"),
        (["adder", "--numbers=1", "--fail=loud"], "value should be one of"),
        (
            ["adder", "--numbers=1", "--fail=config"],
            "xlnet adder: my.yaml: unknown key 'model.d_modle'; did you mean 'd_model'?",
        ),
        (["adder", "--numbers=1", "--fail=data"], "lane 3 is broken: expected 5, got 7"),
        (["adder", "--numbers=1", "--fail=missing"], "No such file or directory: 'no/such/file'"),
        (["adder", "--numbers=1", "--fail=full"], f"{os.strerror(errno.ENOSPC)}: 'out.bin'"),
        (
            ["adder", "--numbers=1", "--fail=tf_full"],
            "No space left on device: 'my run/ckpt.data'\n",
        ),
        (
            ["adder", "--numbers=1", "--fail=tf_memory"],
            "out of memory for an array of shape[7,11]; use a smaller model, batch or input\n",
        ),
    ],
)
def test_wrong_input_is_one_sentence_and_status_2(arguments, sentence, capsys):
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert len(captured.err.splitlines()) == 1
    assert captured.out == ""


def test_the_home_directory_in_a_path_behind_an_equals_sign(tmp_path, monkeypatch, capsys):
    """Shells leave `--output=~/scores` as it is, and a folder named `~` would be made here."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["score", "--model=~/none", "--text=~/none", "--input=~/none"]) == 2
    assert f"'{tmp_path}/none'" in capsys.readouterr().err
    flags = cli.load_verb("score").FLAGS
    assert (flags.text, flags.input) == (["~/none"], f"{tmp_path}/none")
    assert cli.main(["vocab", "--input=~/a.txt,~/b.txt", "--output=~/o", "--size=0"]) == 2
    assert cli.load_verb("vocab").FLAGS.input == [f"{tmp_path}/a.txt", f"{tmp_path}/b.txt"]
    assert not os.path.exists("~")


def test_bug_is_a_traceback_and_status_1(capsys):
    assert cli.main(["adder", "--numbers=1", "--fail=bug"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("Traceback") and "a bug of ours" in captured.err


def test_interrupt_is_status_130(capsys):
    assert cli.main(["adder", "--numbers=1", "--fail=interrupt"]) == 130
    assert capsys.readouterr().err == "xlnet adder: interrupted\n"


def run_program(program):
    """Runs a program in a fresh interpreter; returns the seconds of CPU time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(getattr(after, kind) - getattr(before, kind) for kind in ("ru_utime", "ru_stime"))


@pytest.mark.parametrize("verb", [name for name in cli._verbs() if name != "adder"])
def test_help_of_a_verb_is_quick(verb):
    seconds = run_program(
        f"import sys; from official.xlnet import cli; status = cli.main(['{verb}', '--help']);"
        "assert status == 0 and not {'tensorflow', 'tf_keras', 'matplotlib'} & set(sys.modules)"
    )
    # Of a CPU: 0.2 at most where this was written, up to 1.3 on a slow machine with other work.
    assert seconds < 2


@pytest.mark.slow
def test_configuration_and_tokenizer_do_not_import_tensorflow(tmp_path, vocab_file):
    shutil.copy(vocab_file, tmp_path / "spiece.model")
    config = XLNetConfig.from_dict({"model": {"vocab_size": 2000}})
    config.data.lowercase = True
    config.save(str(tmp_path))
    run_program(
        "import sys; from official import xlnet;"
        f"tokenizer = xlnet.load_tokenizer({str(tmp_path)!r});"
        "assert tokenizer.lowercase and tokenizer.encode('A b') == tokenizer.encode('a b');"
        "assert not {'tensorflow', 'tf_keras'} & set(sys.modules);"
        # Those who import TensorFlow afterwards get all of it, and so does the model garden.
        "from official.modeling import hyperparams;"
        f"tree = hyperparams.read_yaml_to_params_dict({str(tmp_path / 'config.yaml')!r});"
        "assert tree.data.lowercase and isinstance(xlnet.XLNetConfig(), hyperparams.Config);"
        "import tensorflow as tf; assert tf.constant(3).numpy() == 3"
    )


def test_records_are_written_without_tensorflow(tmp_path, vocab_file):
    """The command imports it afterwards, to count the targets of some windows."""
    (tmp_path / "text.txt").write_text("\n\n".join(["One two three four five."] * 300))
    config = XLNetConfig()
    config.data.seq_len, config.data.reuse_len, config.data.num_predict = 32, 12, 5
    config.data.num_lanes = 4
    config.save(str(tmp_path))
    arguments = [[str(tmp_path / "text.txt")], vocab_file, str(tmp_path / "data")]
    run_program(
        "import sys; from official.xlnet import XLNetConfig;"
        "from data_prep.pipelines.prepare import prepare;"
        f"text, vocab, output = {arguments}; config = XLNetConfig.load({str(tmp_path)!r});"
        "assert prepare(text, vocab, config, output, num_workers=1)['windows'] > 0;"
        "assert not {'tensorflow', 'tf_keras', 'apache_beam'} & set(sys.modules)"
    )


@pytest.mark.slow
def test_configuration_after_tensorflow_uses_the_one_that_is_loaded():
    run_program(
        "import tensorflow as tf; from official import xlnet;"
        "from official.modeling.hyperparams import base_config;"
        "assert xlnet.XLNetConfig().model.d_head == 64 and base_config.tf is tf"
    )


# Interrupts at the first import of the package, at the last, in the work, and while one is handled.
INTERRUPTS = {
    "at the start": "official.xlnet.modeling",
    "of imports": "official.xlnet.runtime.address_space",
    "in the work": "official.xlnet.commands.convert",
    "a second one": "official.xlnet.commands.convert",
}


@pytest.mark.parametrize("when", INTERRUPTS)
def test_an_interrupt_is_status_130_at_any_time(when):
    body = f"""
import sys, os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # A background job ignores it.
class Finder:
    def find_spec(self, name, *_):
        if name == {INTERRUPTS[when]!r}:
            try:
                os.kill(os.getpid(), 2)
            finally:
                {"os.kill(os.getpid(), 2)" if when == "a second one" else "pass"}
sys.argv = ["xlnet", "convert", "--help"]
sys.meta_path.insert(0, Finder())
from official.xlnet.cli import main
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True)
    assert done.returncode == 130 and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("streams", "status", "said"),
    [
        ("--help | true; exit ${PIPESTATUS[0]}", 141, ""),
        ("--help >&-", 2, "xlnet: Bad file descriptor: standard output\n"),
        ("--help >/dev/full", 2, "xlnet: No space left on device: standard output\n"),
        ("--help 2>&- >/dev/null", 0, ""),
        ("convert 2>/dev/full", 2, ""),
        ("--version <&- >&- 2>&-", 2, ""),
    ],
)
def test_standard_streams_that_are_closed_full_or_broken(streams, status, said):
    command = f"{sys.executable} -m official.xlnet.cli {streams}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (status, said)


def test_what_steers_a_terminal_is_shown_escaped(capsys):
    assert cli._fail("xlnet: a\x1b[2J\u202e") == 2
    absl_logging.warning("%s", "b\x9bc")
    assert cli.main(["convert", "--source=\x1b[2J\u202e", "--output=x"]) == 2
    first, second, *others = capsys.readouterr().err.splitlines()
    assert first == "xlnet: a\\u001b[2J\\u202e" and second.endswith("b\\u009bc")
    assert len(others) == 1 and others[0].isprintable()
    progress = io.StringIO()
    Progress(progress).keep("a\x9bb\r")
    assert progress.getvalue() == "a\\u009bb\\u000d\n"
    print_json({"text": "\u2066\x7f"})
    assert capsys.readouterr().out == '{"text": "\\u2066\\u007f"}\n'
