"""Every package is there already."""

def requirement(_name):
    """Label of a package."""
    return "@pypi//:environment"
