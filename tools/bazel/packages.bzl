"""Python packages of the lock."""

load("@pypi//:requirements.bzl", "requirement")

def packages(*names):
    """Labels of packages, each once: offline, one label stands for all of them."""
    return {requirement(name): None for name in names}.keys()
