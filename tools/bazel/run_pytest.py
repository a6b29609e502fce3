"""Runs pytest on the files that are its arguments, as `bazel test` wants it."""

import os
import sys

import pytest

if __name__ == "__main__":
    report = os.environ.get("XML_OUTPUT_FILE")
    reporting = [f"--junitxml={report}"] if report else []
    sys.exit(pytest.main(["-p", "no:cacheprovider", *reporting, *sys.argv[1:]]))
