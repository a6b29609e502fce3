"""Bazel targets for pytest tests."""

load("@rules_python//python:defs.bzl", "py_test")

def pytest_tests(files, **arguments):
    """Creates one target per test file, named after its path.

    Args:
      files: test files.
      **arguments: arguments of `py_test`.
    """
    for file in files:
        py_test(
            name = file[:-len(".py")],
            srcs = [file, "//tools/bazel:run_pytest.py"],
            main = "//tools/bazel:run_pytest.py",
            args = [file],
            **arguments
        )
