"""A worker that is not root, as in the container: a program, started with a folder and a tier.

Started by root it first does everything once, so that all it needs is loaded, and becomes an
ordinary user then. It prints what it saw as JSON.
"""

import asyncio
import ctypes
import json
import os
import sys
from pathlib import Path

from app.kit.sandbox.box import Sandbox, Tier
from app.kit.sandbox.program import Program
from app.settings import Settings

_UID = 12345
_DUMPABLE = 4

_CODE = """
import os, resource, signal, time
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
made = 0
try:
    while made < 300:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        made += 1
except OSError:
    pass
print("bounded" if made < 100 else "unbounded")
"""


async def main(home: Path, tier: Tier) -> dict[str, object]:
    sandbox = Sandbox(Settings(data_dir=home / "data", sandbox_dir=home))
    started = await sandbox.start((tier,))
    file = home / "of-the-worker"
    file.write_text("planted", encoding="utf-8")
    file.chmod(0o600)
    seen: dict[str, object] = {"tier": started, "uid": os.getuid()}
    if started == tier:
        code = _CODE.replace("@worker@", str(os.getpid())).replace("@file@", str(file))
        program = Program(language="python", files={"main": code}, entry="main")
        ran = await sandbox.run(program, b"", 10)
        seen["said"], seen["ending"] = ran.output.decode().split(), ran.ending
    about = file.stat()
    seen["file"] = [oct(about.st_mode & 0o7777), about.st_mtime > 1, file.read_text("utf-8")]
    seen["left"] = os.listdir(home / "runs")  # noqa: PTH208
    file.unlink()
    return seen


def become_ordinary(home: Path) -> None:
    for path in (home, *home.rglob("*")):
        os.chown(path, _UID, _UID, follow_symlinks=False)
    os.setgroups([])
    os.setresgid(_UID, _UID, _UID)
    os.setresuid(_UID, _UID, _UID)
    # As with every process that was this user from its start.
    ctypes.CDLL(None).prctl(_DUMPABLE, 1, 0, 0, 0)


if __name__ == "__main__":
    folder, wanted = Path(sys.argv[1]), sys.argv[2]
    if os.geteuid() == 0:
        asyncio.run(main(folder, wanted))  # type: ignore[arg-type]
        become_ordinary(folder)
    sys.stdout.write(json.dumps(asyncio.run(main(folder, wanted))))  # type: ignore[arg-type]
