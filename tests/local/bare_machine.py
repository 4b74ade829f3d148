"""A machine with Python and nothing else, made with bubblewrap.

Its file system holds the few programs that a shell script needs, Python, and the libraries that
those and every manylinux wheel may expect. There is no compiler, no package manager and no library
beside them; the user has no name, and a home that cannot be written.
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
# What a wheel may ask of a machine: the policy of manylinux, without its X11 and GL.
_LIBRARIES = (
    *("libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libutil.so.1"),
    *("libresolv.so.2", "libnsl.so.1", "libgcc_s.so.1", "libstdc++.so.6", "libz.so.1"),
    *("libnss_dns.so.2", "libnss_files.so.2"),
)
_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/pip.conf")
_USERS = "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/sh\n"
# How the registry is reached from here.
_KEPT = ("PIP_", "UV_", "SSL_CERT_")


def command(checkout: Path, cache: Path, *program: str, **environment: str) -> list[str]:
    """Runs a program there, in a copy of the checkout that may be written."""
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        pytest.fail("bubblewrap is missing (Debian: apt-get install bubblewrap)")
    etc = checkout.with_name("etc")
    etc.mkdir()
    (etc / "passwd").write_text(_USERS, encoding="utf-8")
    words = [
        bubblewrap, "--unshare-user", "--unshare-pid", "--die-with-parent", "--clearenv",
        "--uid", str(UID), "--gid", str(UID),
        "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
        "--symlink", "usr/lib64", "/lib64",
        "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/home",
        "--ro-bind", str(etc / "passwd"), "/etc/passwd",
    ]  # fmt: skip
    for target, source in _files().items():
        words += ["--ro-bind", source, target]
    for path in (*_NETWORK, *_certificates()):
        words += ["--ro-bind-try", os.path.realpath(path), path]
    words += ["--bind", str(checkout), "/parley", "--bind", str(cache), "/cache"]
    words += ["--remount-ro", "/", "--chdir", "/parley"]
    path = f"/usr/bin:{Path(_python()).parent}"
    kept = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
    for name, value in {**kept, "PATH": path, "HOME": "/home", **environment}.items():
        words += ["--setenv", name, value]
    return [*words, *program]


def _python() -> str:
    return os.path.realpath(sys.executable)


def _certificates() -> list[str]:
    named = [os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")]
    return ["/etc/ssl/certs", *filter(None, named)]


def _files() -> dict[str, str]:
    """What is there, by its place: where it comes from."""
    files = {f"/usr/bin/{name}": os.path.realpath(_which(name)) for name in _PROGRAMS}
    files[_python()] = _python()
    stdlib = sysconfig.get_path("stdlib")
    files[stdlib] = stdlib
    # Debian keeps what `venv` puts into a new environment apart.
    if Path("/usr/share/python-wheels").is_dir():
        files["/usr/share/python-wheels"] = "/usr/share/python-wheels"
    modules = [str(path) for path in Path(stdlib, "lib-dynload").glob("*.so")]
    needed = _needed_by([*files.values(), *modules])
    libc = next(path for path in needed if Path(path).name == "libc.so.6")
    also = [str(Path(libc).with_name(name)) for name in _LIBRARIES]
    for path in {*needed, *filter(os.path.exists, also)}:
        # /lib is a link to /usr/lib on most machines, and here.
        place = Path(os.path.realpath(Path(path).parent), Path(path).name)
        files[str(place)] = os.path.realpath(path)
    assert not [path for path in files if "gomp" in path]
    return files


def _which(name: str) -> str:
    found = shutil.which(name)
    assert found is not None, f"{name} is missing"
    return found


def _needed_by(programs: list[str]) -> set[str]:
    """The libraries that a program loads with itself, and the loader."""
    done = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False)
    words = [word for line in done.stdout.splitlines() for word in line.split()]
    return {word for word in words if word.startswith("/") and ".so" in word and ":" not in word}


def copy_checkout(source: Path, target: Path) -> None:
    """What is in the repository, without what a machine left in it."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("app", "db", "workers", "scripts"):
        shutil.copytree(source / name, target / name, ignore=ignored)
    for pattern in ("*.lock", "*.toml", "*.ini", "*.md"):
        for path in source.glob(pattern):
            shutil.copy(path, target)
