"""Where the root keys come from: PARLEY_MASTER_KEYS, or a 0600 file that the embedded mode made."""

import os
from pathlib import Path

from app.kit.crypto import KeyProblem, Keyring
from app.settings import Settings

_OTHERS = 0o077


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
            f"`parley up` once, which makes {path}"
        )
    if path.stat().st_mode & _OTHERS:
        raise KeyProblem(f"{path} can be read by others: chmod 600 it")
    watched = _Watched(path)
    try:
        return Keyring.parse(watched.text(), watched.newer)
    except (KeyProblem, UnicodeDecodeError) as error:
        raise KeyProblem(f"{path}: {error}") from None


class _Watched:
    """The key file, and whether it has changed since it was last read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = 0

    def text(self) -> str:
        self._seen = self._path.stat().st_mtime_ns
        return self._path.read_text(encoding="ascii").replace("\n", ",")

    def newer(self) -> str | None:
        try:
            return self.text() if self._path.stat().st_mtime_ns != self._seen else None
        except (OSError, UnicodeDecodeError):
            return None


def ensure(settings: Settings, *, data_exists: bool) -> None:
    """Make the embedded key file on the very first start. Never beside data that it cannot open."""
    path = key_file(settings)
    if settings.master_keys or path.exists():
        return
    if data_exists or not settings.embedded_postgres:
        load(settings)
    write(settings, [Keyring.generate("k1")])


def write(settings: Settings, entries: list[str]) -> None:
    """Replace the key file as a whole: a crash leaves the old one or the new one."""
    path = key_file(settings)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write("\n".join(entries) + "\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
