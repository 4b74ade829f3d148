"""The two lengths of a run: short before each commit, long before a release.

`./scripts/test --long` sets PARLEY_LONG_TESTS. Tests marked `long` run only then, and tests whose
worth grows with their rounds ask `rounds` how many to do.
"""

import os

IS_LONG = os.environ.get("PARLEY_LONG_TESTS") == "1"


def rounds(short: int, long: int) -> int:
    return long if IS_LONG else short
