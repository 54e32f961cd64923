"""The key `owner`: who answers for a case."""

from pytest_queryeval.documents.values import required_text
from pytest_queryeval.suites.keys import Key

OWNER = Key(name="owner", description="who answers for a case", levels=("folder", "file", "case"), read=required_text)
