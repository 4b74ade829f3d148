"""The stronger tier: each run has namespaces of its own, created by bubblewrap.

A run sees only a read-only /usr, the copied interpreters and its code: no /proc, no network, no
other process, no environment. /tmp is a small file system in memory.
"""

import shutil
from pathlib import Path

from app.sandbox.limits import Limits
from app.sandbox.runtimes import Runtimes

UID = 65534
_CODE = "/code"

# Bash reads its start-up files when its input is a socket, as with uvloop.
_BASH = ("/usr/bin/bash", "--noprofile", "--norc", "-c")

# The limits are set inside the namespaces, where only the run's own processes count.
# With `fd3`, the code writes its result to descriptor 3, and what it prints is its log.
_ENTER = """
ulimit -c 0 -u "$1" -d "$2" -f "$3" -n "$4" -t "$5" || exit 125
ulimit -i "$6" -l 0 -q 0 || exit 125
ulimit -s "$7" 2>/dev/null || [ "$(ulimit -Hs)" -le "$7" ] || exit 125
if [ "$8" = fd3 ]; then exec 3>&1 1>&2; fi
shift 8
exec "$@"
"""


# The worker's event loop leaves inheritable descriptors open; only the filter's is passed on.
_CLOSE = """
for path in /proc/self/fd/*; do
  number=${path##*/}
  if [ "$number" -gt 2 ] && [ "$number" != "$1" ]; then eval "exec $number>&-"; fi
done
shift
exec "$@"
"""


def find() -> str | None:
    return shutil.which("bwrap")


def with_priority(limits: Limits) -> list[str]:
    """Returns a command prefix that sets the priority, which all processes of the run inherit."""
    program = shutil.which("nice")
    if program is None:
        raise FileNotFoundError("nice is not installed")
    return [program, "-n", str(limits.nice)]


def without_inherited(seccomp_fd: int) -> list[str]:
    """Returns a command prefix that closes all descriptors but 0 to 2 and the filter's."""
    return [*_BASH, _CLOSE, "close", str(seccomp_fd)]


def as_nobody() -> list[str]:
    """Returns a command prefix that switches from root to an unprivileged user."""
    program = shutil.which("setpriv")
    if program is None:
        raise FileNotFoundError("setpriv is not installed")
    return [program, f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--no-new-privs"]


def command(
    program: str, runtimes: Runtimes, code: Path, seccomp_fd: int, environment: dict[str, str]
) -> list[str]:
    binds = {
        "/usr": "/usr",
        str(runtimes.home): "/runtime",
        str(runtimes.packages): "/packages",
        str(code): _CODE,
    }
    arguments = [
        program,
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
        "--cap-drop",
        "ALL",
        "--die-with-parent",
        "--new-session",
        "--uid",
        str(UID),
        "--gid",
        str(UID),
        "--hostname",
        "sandbox",
    ]
    for source, target in binds.items():
        arguments += ["--ro-bind", source, target]
    for name in ("bin", "lib", "lib64"):
        arguments += ["--symlink", f"usr/{name}", f"/{name}"]
    arguments += ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
    # Without /dev/zero: a shared mapping of it is memory that no limit counts.
    for name in ("null", "random", "urandom"):
        arguments += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    arguments += ["--size", str(Limits().scratch_bytes), "--tmpfs", "/tmp"]  # noqa: S108  # inside
    arguments += ["--remount-ro", "/", "--chdir", "/tmp"]  # noqa: S108
    arguments += ["--seccomp", str(seccomp_fd)]
    for name, value in environment.items():
        arguments += ["--setenv", name, value]
    return arguments


def with_limits(
    inner: list[str], limits: Limits, cpu_seconds: int, *, result_on_fd3: bool
) -> list[str]:
    """Returns the command that sets the limits inside the namespaces and runs `inner`."""
    kib = 1024
    numbers = (
        limits.processes,
        limits.process_bytes // kib,
        limits.scratch_bytes // kib,
        limits.open_files,
        cpu_seconds,
        limits.pending_signals,
        limits.stack_bytes // kib,
    )
    mode = "fd3" if result_on_fd3 else "-"
    return [*_BASH, _ENTER, "enter", *map(str, numbers), mode, *inner]


def paths() -> dict[str, str]:
    """Returns the paths inside the namespaces."""
    return {
        "python": "/runtime/python",
        "node": "/runtime/node/node",
        "packages": "/packages",
        "code": _CODE,
        "home": "/tmp",  # noqa: S108
    }
