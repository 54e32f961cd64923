"""The entry point of the console script `queryeval` and of `python -m pytest_queryeval`.

The rest of the package is imported inside `try`, so that Ctrl-C during imports is handled, too.
"""

import gc
import sys


def main() -> int:
    """Run the command that the arguments of this process name; return the exit status."""
    try:
        from pytest_queryeval import cli

        return cli.main()
    except KeyboardInterrupt:
        from pytest_queryeval.core.process import INTERRUPTED

        sys.stderr.write("queryeval: interrupted\n")
        return INTERRUPTED
    finally:
        gc.freeze()  # the process ends: Python would take apart all that is loaded


if __name__ == "__main__":
    status = main()
    # If Ctrl-C interrupts `exec` of a string (a dataclass is one), CPython ends `python -m` by SIGINT, whatever the
    # exit status, unless another string is run in the meantime.
    eval("0")  # noqa: S307
    sys.exit(status)
