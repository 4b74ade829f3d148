"""Script that runs a sandbox as an ordinary user, as in the container: `FOLDER TIER`.

As root it first runs everything once, so that all modules are loaded, and then switches to an
ordinary user. It writes its observations to `observations.json` in the folder.
"""

import asyncio
import ctypes
import json
import os
import sys
from pathlib import Path

from app.sandbox.box import Sandbox, Tier
from app.sandbox.program import Program
from app.settings import Settings

_UID = 12345
_DUMPABLE = 4

_CODE = """
import os, resource, signal
def attempt(name, do):
    try:
        do()
        print(name)
    except OSError:
        pass
worker, file = @worker@, "@file@"
attempt("read", lambda: print(open(file).read()))
attempt("mode", lambda: os.chmod(file, 0o777))
attempt("times", lambda: os.utime(file, (1, 1)))
attempt("length", lambda: os.truncate(file, 0))
attempt("remove", lambda: os.remove(file))
attempt("limits", lambda: resource.prlimit(worker, resource.RLIMIT_CORE, (0, 0)))
attempt("pace", lambda: os.setpriority(os.PRIO_PROCESS, worker, 5))
attempt("signal", lambda: os.kill(worker, signal.SIGTERM))
attempt("environment", lambda: open(f"/proc/{worker}/environ").read())
children = 0
try:
    while children < 300:
        # A small program: the run must not end by the limit of memory instead.
        os.posix_spawn("/usr/bin/sleep", ["sleep", "30"], {})
        children += 1
except OSError:
    pass
print("bounded" if 5 < children < 100 else "unbounded")
"""


async def main(home: Path, tier: Tier) -> dict[str, object]:
    sandbox = Sandbox(Settings(data_dir=home / "data", sandbox_dir=home))
    started = await sandbox.start((tier,))
    file = home / "of-the-worker"
    file.write_text("planted", encoding="utf-8")
    file.chmod(0o600)
    outcome: dict[str, object] = {"tier": started, "uid": os.getuid()}
    if started == tier:
        code = _CODE.replace("@worker@", str(os.getpid())).replace("@file@", str(file))
        program = Program(language="python", files={"main": code}, entry="main")
        result = await sandbox.run(program, b"", 10)
        outcome["output"], outcome["ending"] = result.output.decode().split(), result.ending
    stats = file.stat()
    outcome["file"] = [oct(stats.st_mode & 0o7777), stats.st_mtime > 1, file.read_text("utf-8")]
    outcome["remaining_runs"] = os.listdir(home / "runs")  # noqa: PTH208
    file.unlink()
    return outcome


def become_ordinary_user(home: Path) -> None:
    for path in (home, *home.rglob("*")):
        # A hard link is to a program outside of the folder, which stays root's.
        if path.is_dir() or path.lstat().st_nlink == 1:
            os.chown(path, _UID, _UID, follow_symlinks=False)
    os.setgroups([])
    os.setresgid(_UID, _UID, _UID)
    os.setresuid(_UID, _UID, _UID)
    # A process that starts as this user is dumpable; setresuid clears the flag.
    ctypes.CDLL(None).prctl(_DUMPABLE, 1, 0, 0, 0)


if __name__ == "__main__":
    folder, tier_name = Path(sys.argv[1]), sys.argv[2]
    if os.geteuid() == 0:
        asyncio.run(main(folder, tier_name))  # type: ignore[arg-type]
        become_ordinary_user(folder)
    observations = json.dumps(asyncio.run(main(folder, tier_name)))  # type: ignore[arg-type]
    (folder / "observations.json").write_text(observations, encoding="ascii")
