"""The Python that runs the tests, for command.queryeval.yaml: `python3` need not be the same, or be there at all."""

import os
import sys

os.environ.setdefault("PYTHON", sys.executable)
