"""The verbs of the `xlnet` command, one module each.

A module `commands/<verb>.py` is the verb: its docstring opens with the line that
`xlnet --help` shows, and it defines

* `FLAGS`: an `absl.flags.FlagValues()` of its own, which its flags are defined in
  (`flags.DEFINE_string(..., flag_values=FLAGS)`);
* `run() -> dict`: does the work and returns the figures of the run, which `official.xlnet.cli`
  prints as the last line of standard output. Values are what `json.dumps` takes.

A module with `TAKES_ARGUMENTS = True` also takes arguments that are no flags: `run(*arguments)`.

All verbs also have the flag `--import`: modules of extensions, imported before `run`.

A module is imported only when its verb is called.
"""
