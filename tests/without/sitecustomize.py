"""Hides features from the programs that tests start."""

import os
import sys

sys.modules.update(
    dict.fromkeys(f"pytest_queryeval.features.{name}" for name in os.environ["QUERYEVAL_TESTS_WITHOUT"].split())
)
