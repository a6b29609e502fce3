"""Subcommands (verbs) of the `xlnet` command, one module per verb.

To add a verb, add a module `commands/<verb>.py`. The first line of its docstring is shown by
`xlnet --help`. The module defines

* `FLAGS`: its own `absl.flags.FlagValues()`, in which its flags are defined
  (`flags.DEFINE_string(..., flag_values=FLAGS)`);
* `run() -> dict`: runs the command and returns its results, which `official.xlnet.cli` prints as
  JSON on the last line of standard output;
* optionally `TAKES_ARGUMENTS = True`, to accept positional arguments: `run(*arguments)`.

A package `commands/<group>/` holds verbs of two words, such as `xlnet inspect records`.

All verbs also have the flag `--import`: extension modules to import before `run`.

A module is imported only when its verb is run. Import what the flags do not need inside `run`, so
that `xlnet VERB --help` does not load TensorFlow.
"""
