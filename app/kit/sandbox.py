"""Which sandbox this machine offers for user code. Found by trying, at the start of a worker."""

import ctypes
import shutil
import subprocess
from typing import Literal

Tier = Literal["bubblewrap", "landlock", "none"]

_SYS_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_VERSION_FLAG = 1
_PR_GET_SECCOMP = 21


def tier() -> Tier:
    if _bubblewrap_works():
        return "bubblewrap"
    if _landlock_works():
        return "landlock"
    return "none"


def _bubblewrap_works() -> bool:
    program = shutil.which("bwrap")
    if program is None:
        return False
    command = [
        program,
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
        "--cap-drop",
        "ALL",
        "--die-with-parent",
        "--new-session",
        "--ro-bind",
        "/usr",
        "/usr",
        *[
            part
            for name in ("/bin", "/lib", "/lib64")
            for part in ("--symlink", f"usr{name}", name)
        ],
        "--uid",
        "65534",
        "--tmpfs",
        "/tmp",  # noqa: S108  # a mount inside the sandbox
        "/usr/bin/true",
    ]
    try:
        done = subprocess.run(command, env={}, capture_output=True, timeout=5, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _landlock_works() -> bool:
    """Landlock answers with its version, and seccomp can be asked for."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        version = libc.syscall(_SYS_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION_FLAG)
        return bool(version >= 1 and libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0)
    except (OSError, AttributeError):
        return False
