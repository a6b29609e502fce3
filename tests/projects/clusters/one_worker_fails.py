"""`xlnet` whose worker 1 sums an array of another shape than worker 0 after step 3; a program."""

import sys

import numpy as np

from official.xlnet import cli
from official.xlnet.projects.clusters.workers import ClusterWorkers

STEP = 3

if __name__ == "__main__":
    right_any = ClusterWorkers.any
    calls = []

    def wrong_any(workers, is_true):
        calls.append(is_true)
        if len(calls) < STEP or not workers._strategy.cluster_resolver.task_id:
            return right_any(workers, is_true)
        return workers._sum(np.zeros(5, np.int64))

    ClusterWorkers.any = wrong_any
    sys.exit(cli.main())
