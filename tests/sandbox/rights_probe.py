"""A script that loads another one, and reports what its process may do instead of running it."""

from pathlib import Path

_CODE = """
import errno, importlib.util, json, os, resource, socket, sys, threading

spec = importlib.util.spec_from_file_location("probed", {script!r})
probed = importlib.util.module_from_spec(spec)
spec.loader.exec_module(probed)

def load():
    global status
    getattr(probed, "load", lambda: None)()
    status = os.open("/proc/self/status", os.O_RDONLY)

def write(path):
    with open(path, "w") as file:
        file.write("x")

def fail_at(action):
    try:
        action()
    except OSError as error:
        return errno.errorcode[error.errno]
    except (RuntimeError, ImportError) as error:
        return type(error).__name__
    return "allowed"

def main():
    actions = {{
        "socket": lambda: socket.socket(),
        "socketpair": lambda: socket.socketpair(),
        "fork": lambda: os.fork() or os._exit(0),
        "thread": lambda: threading.Thread(target=int).start(),
        "exec": lambda: os.execv("/bin/true", ["true"]),
        "signal": lambda: os.kill(os.getppid(), 0),
        "import": lambda: __import__("wave"),
        **{{"read " + path: lambda path=path: open(path).read(1) for path in {read!r}}},
        **{{"write " + path: lambda path=path: write(path) for path in {written!r}}},
    }}
    lines = os.pread(status, 100_000, 0).decode().splitlines()
    report = {{
        "outcomes": {{name: fail_at(action) for name, action in actions.items()}},
        "status": {{name: value.strip() for name, _, value in (x.partition(":") for x in lines)}},
        "limits": {{
            name: resource.getrlimit(getattr(resource, "RLIMIT_" + name))[1]
            for name in ("NPROC", "FSIZE", "CORE", "NOFILE", "AS", "CPU")
        }},
        "environment": dict(os.environ),
        "descriptors": [fd for fd in range(64) if fail_at(lambda: os.fstat(fd)) == "allowed"],
        "session": os.getsid(0) == os.getpid(),
    }}
    print(json.dumps(report))
"""


def write_probe(folder: Path, script: Path, *, read: list[str], written: list[str]) -> Path:
    path = folder / "probe.py"
    path.write_text(_CODE.format(script=str(script), read=read, written=written), encoding="utf-8")
    return path
