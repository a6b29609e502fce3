"""Development tools."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # As the xlnet command and `make` do.
