"""Entry point of `bazel test`: runs pytest on the files given as arguments."""

import os
import sys

import pytest

if __name__ == "__main__":
    report = os.environ.get("XML_OUTPUT_FILE")
    reporting = [f"--junitxml={report}"] if report else []
    sys.exit(pytest.main(["-p", "no:cacheprovider", *reporting, *sys.argv[1:]]))
