"""A command with a batch that replicas cannot share, then the same with its own; a program."""

import contextlib
import io
import sys

from official.xlnet import cli

MESSAGE = "training.batch_size: expected a multiple of 4, for 2 replicas"

if __name__ == "__main__":
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        status = cli.main([*sys.argv[1:], "--set=batch_size=6"])
    assert status == 2 and MESSAGE in errors.getvalue(), (status, errors.getvalue())
    sys.exit(cli.main())
