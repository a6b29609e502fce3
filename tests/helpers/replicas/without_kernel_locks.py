"""`xlnet` on a file system without kernel locks, whose leases expire after seconds; a program."""

import sys

from official.xlnet import cli
from official.xlnet.files import locks
from official.xlnet.files.locks import leases

if __name__ == "__main__":
    locks.is_local = lambda _: False
    leases.RENEWAL_SECONDS, leases.EXPIRY_SECONDS = 0.5, 5
    sys.exit(cli.main())
