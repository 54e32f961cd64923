"""The same function as a program: a case as JSON on stdin, the query on stdout. Any language will do for such a one."""

import json
import sys
from types import SimpleNamespace

from translate import translate

sys.stdout.write(translate(SimpleNamespace(**json.load(sys.stdin))))
