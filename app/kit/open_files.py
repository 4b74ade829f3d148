"""How many files and sockets this process may have open."""

import contextlib
import resource

# More than any process needs; what starts children may go through all numbers up to the limit.
_WANTED = 65_536
# The most that macOS gives to a process whose hard limit is none.
_WANTED_ON_MACOS = 10_240


def read_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _WANTED if soft == resource.RLIM_INFINITY else soft


def raise_limit() -> None:
    """Raises the soft limit towards the hard one. Children inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (_WANTED, _WANTED_ON_MACOS):
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < limit:
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
                return
