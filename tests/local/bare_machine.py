"""A machine with Python and nothing else, simulated with bubblewrap.

Its file system contains the few programs that a shell script needs, Python, and the libraries that
these and every manylinux wheel may expect. It has no compiler, no package manager and no other
library; the user has no name and a read-only home.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

import pytest

UID: Final = 12345
_PROGRAMS = (
    "awk",
    "bash",
    "cat",
    "cksum",
    "dirname",
    "env",
    "grep",
    "mkdir",
    "rm",
    "sed",
    "sh",
    "uname",
)
# The libraries that a wheel may expect by the manylinux policy, without X11 and GL.
_LIBRARIES = (
    *("libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libutil.so.1"),
    *("libresolv.so.2", "libnsl.so.1", "libgcc_s.so.1", "libstdc++.so.6", "libz.so.1"),
    *("libnss_dns.so.2", "libnss_files.so.2"),
)
_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/pip.conf")
_USERS = "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/sh\n"
# Variables that configure access to the package registry.
_INHERITED_PREFIXES = ("PIP_", "UV_", "SSL_CERT_")


def command(checkout: Path, cache: Path, *program: str, **environment: str) -> list[str]:
    """Returns the command that runs a program there, in a writable copy of the checkout."""
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        pytest.fail("bubblewrap is missing (Debian: apt-get install bubblewrap)")
    etc = checkout.with_name("etc")
    etc.mkdir()
    (etc / "passwd").write_text(_USERS, encoding="utf-8")
    arguments = [
        bubblewrap, "--unshare-user", "--unshare-pid", "--die-with-parent", "--clearenv",
        "--uid", str(UID), "--gid", str(UID),
        "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
        "--symlink", "usr/lib64", "/lib64",
        "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/home",
        "--ro-bind", str(etc / "passwd"), "/etc/passwd",
    ]  # fmt: skip
    for target, source in _files().items():
        arguments += ["--ro-bind", source, target]
    for path in (*_NETWORK, *_certificates()):
        arguments += ["--ro-bind-try", os.path.realpath(path), path]
    arguments += ["--bind", str(checkout), "/parley", "--bind", str(cache), "/cache"]
    arguments += ["--remount-ro", "/", "--chdir", "/parley"]
    path = f"/usr/bin:{Path(_python()).parent}"
    inherited = {
        name: value for name, value in os.environ.items() if name.startswith(_INHERITED_PREFIXES)
    }
    for name, value in {**inherited, "PATH": path, "HOME": "/home", **environment}.items():
        arguments += ["--setenv", name, value]
    return [*arguments, *program]


def _python() -> str:
    return os.path.realpath(sys.executable)


def _certificates() -> list[str]:
    paths = [os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")]
    return ["/etc/ssl/certs", *filter(None, paths)]


def _files() -> dict[str, str]:
    """Returns the source of each file of the machine by its path there."""
    files = {f"/usr/bin/{name}": os.path.realpath(_which(name)) for name in _PROGRAMS}
    files[_python()] = _python()
    stdlib = sysconfig.get_path("stdlib")
    files[stdlib] = stdlib
    # Debian has a separate folder for the wheels that `venv` installs.
    if Path("/usr/share/python-wheels").is_dir():
        files["/usr/share/python-wheels"] = "/usr/share/python-wheels"
    modules = [str(path) for path in Path(stdlib, "lib-dynload").glob("*.so")]
    libraries = _libraries_of([*files.values(), *modules])
    libc = next(path for path in libraries if Path(path).name == "libc.so.6")
    expected = [str(Path(libc).with_name(name)) for name in _LIBRARIES]
    for path in {*libraries, *filter(os.path.exists, expected)}:
        # /lib is a link to /usr/lib on most machines, and here.
        target = Path(os.path.realpath(Path(path).parent), Path(path).name)
        files[str(target)] = os.path.realpath(path)
    assert not [path for path in files if "gomp" in path]
    return files


def _which(name: str) -> str:
    path = shutil.which(name)
    assert path is not None, f"{name} is missing"
    return path


def _libraries_of(programs: list[str]) -> set[str]:
    """Returns the shared libraries of programs, and the loader."""
    completed = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False)
    words = [word for line in completed.stdout.splitlines() for word in line.split()]
    return {word for word in words if word.startswith("/") and ".so" in word and ":" not in word}


def copy_checkout(source: Path, target: Path) -> None:
    """Copies the repository's files without generated ones."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("app", "db", "workers", "scripts"):
        shutil.copytree(source / name, target / name, ignore=ignored)
    for pattern in ("*.lock", "*.toml", "*.ini", "*.md"):
        for path in source.glob(pattern):
            shutil.copy(path, target)
