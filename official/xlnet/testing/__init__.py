"""Conformance checks of parts: what each task, objective and network has to do, of any package.

A check takes the name that a part is registered under, uses a tiny random model, and raises
`AssertionError` with a sentence that names what is wrong.
"""

from official.xlnet.testing.networks import check_network
from official.xlnet.testing.objectives import check_objective
from official.xlnet.testing.tasks import check_task

__all__ = ["check_network", "check_objective", "check_task"]
