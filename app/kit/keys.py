"""Loads the root keys from PARLEY_MASTER_KEYS, or from the 0600 key file of embedded mode."""

import os
from pathlib import Path

from app.kit.crypto import KeyProblem, Keyring
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
    """Reads the key file and detects changes by its modification time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._modified_at = 0

    def read(self) -> str:
        self._modified_at = self._path.stat().st_mtime_ns
        return self._path.read_text(encoding="ascii").replace("\n", ",")

    def read_changed(self) -> str | None:
        try:
            return self.read() if self._path.stat().st_mtime_ns != self._modified_at else None
        except (OSError, UnicodeDecodeError):
            return None


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
