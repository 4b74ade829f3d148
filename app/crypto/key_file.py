"""Loads the root keys from PARLEY_MASTER_KEYS, or from the 0600 key file of embedded mode."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.crypto.keyring import KeyProblem, Keyring
from app.settings import Settings

_GROUP_AND_OTHERS = 0o077


def key_file(settings: Settings) -> Path:
    return settings.data_dir / "keys" / "master.keys"


def load(settings: Settings) -> Keyring:
    if settings.master_keys:
        try:
            return Keyring.parse(settings.master_keys)
        except KeyProblem as error:
            raise KeyProblem(f"PARLEY_MASTER_KEYS: {error}") from None
    path = key_file(settings)
    if not path.exists():
        raise KeyProblem(
            f"there is no root key: set PARLEY_MASTER_KEYS (kid:base64 of 32 bytes), or run "
            f"`parley up` once, which creates {path}"
        )
    if path.stat().st_mode & _GROUP_AND_OTHERS:
        raise KeyProblem(f"{path} can be read by others: chmod 600 it")
    file = _KeyFile(path)
    try:
        return Keyring.parse(file.read(), file.read_changed)
    except (KeyProblem, UnicodeDecodeError) as error:
        raise KeyProblem(f"{path}: {error}") from None


class _KeyFile:
    """Reads the key file and detects that it was written or replaced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version = (0, 0)

    def read(self) -> str:
        self._version = self._read_version()
        return self._path.read_text(encoding="ascii").replace("\n", ",")

    def read_changed(self) -> str | None:
        try:
            return self.read() if self._read_version() != self._version else None
        except (OSError, UnicodeDecodeError):
            return None

    def _read_version(self) -> tuple[int, int]:
        stats = self._path.stat()
        # Two files that were written one right after the other can have the same time.
        return stats.st_mtime_ns, stats.st_ino


def ensure(settings: Settings, *, data_exists: bool) -> None:
    """Creates the embedded key file on the first start, never for data that older keys sealed."""
    path = key_file(settings)
    if settings.master_keys or path.exists():
        return
    if data_exists or not settings.embedded_postgres:
        load(settings)
    write(settings, [Keyring.generate("k1")])


def write(settings: Settings, entries: list[str]) -> None:
    """Replaces the key file atomically: a crash leaves the old or the new one."""
    path = key_file(settings)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write("\n".join(entries) + "\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


@contextmanager
def lock_key_file(settings: Settings) -> Iterator[None]:
    """Allows one rotation of the key file. Of two at once, one would remove the other's key."""
    if settings.master_keys:
        yield
        return
    folder = os.open(key_file(settings).parent, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise KeyProblem("another rotation is under way; nothing was done") from None
        yield
    finally:
        os.close(folder)
