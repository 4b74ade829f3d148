"""The stronger tier: namespaces of its own, made by bubblewrap.

Nothing of the machine is there but a read-only /usr, the copied interpreters and the code itself:
no /proc, no network, no other process, no environment. /tmp is a small file system in memory.
"""

import shutil
from pathlib import Path

from app.kit.sandbox.limits import Limits
from app.kit.sandbox.runtimes import Runtimes

UID = 65534
_CODE = "/code"

# Without its files: with a socket as its input, as uvloop gives it, bash would read them.
_BASH = ("/usr/bin/bash", "--noprofile", "--norc", "-c")

# Limits are set within the namespaces, where processes are counted apart from everybody else's.
# What a function returns leaves by descriptor 3; what it prints is its log.
_ENTER = """
ulimit -c 0 -u "$1" -d "$2" -f "$3" -n "$4" -t "$5" || exit 125
if [ "$6" = apart ]; then exec 3>&1 1>&2; fi
shift 6
exec "$@"
"""


# The worker's event loop leaves open whatever is inheritable; only the filter is passed on.
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


def without_inherited(seccomp_fd: int) -> list[str]:
    """Put before a command: it has no descriptor but the usual three and the filter's."""
    return [*_BASH, _CLOSE, "close", str(seccomp_fd)]


def as_nobody() -> list[str]:
    """Root gives up being root before anything else happens."""
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
    words = [
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
        words += ["--ro-bind", source, target]
    for name in ("bin", "lib", "lib64"):
        words += ["--symlink", f"usr/{name}", f"/{name}"]
    words += ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
    # Not zero: mapped and shared, it is memory that no limit counts.
    for name in ("null", "random", "urandom"):
        words += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    words += ["--size", str(Limits().scratch_bytes), "--tmpfs", "/tmp"]  # noqa: S108  # inside
    words += ["--remount-ro", "/", "--chdir", "/tmp"]  # noqa: S108
    words += ["--seccomp", str(seccomp_fd)]
    for name, value in environment.items():
        words += ["--setenv", name, value]
    return words


def entered(inner: list[str], limits: Limits, cpu_seconds: int, *, apart: bool) -> list[str]:
    """The command within, behind its limits."""
    kib = 1024
    numbers = (
        limits.processes,
        limits.process_bytes // kib,
        limits.scratch_bytes // kib,
        limits.open_files,
        cpu_seconds,
    )
    given = [str(number) for number in numbers]
    return [*_BASH, _ENTER, "enter", *given, "apart" if apart else "-", *inner]


def places() -> dict[str, str]:
    """Where code finds things within."""
    return {
        "python": "/runtime/python",
        "node": "/runtime/node/node",
        "packages": "/packages",
        "code": _CODE,
        "home": "/tmp",  # noqa: S108
    }
