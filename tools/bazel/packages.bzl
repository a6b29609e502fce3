"""Labels of the Python packages in requirements.lock."""

load("@pypi//:requirements.bzl", "requirement")

def packages(*names):
    """Returns deduplicated labels of packages; offline, all packages have the same label."""
    return {requirement(name): None for name in names}.keys()
