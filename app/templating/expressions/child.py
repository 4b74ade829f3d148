"""Script of the process that evaluates expressions; `process.py` starts it and sends requests.

Its arguments are the limit of memory in bytes, the seconds of one evaluation, and the id of its
parent. It reads frames from standard input and writes frames to standard output: a length in four
bytes and JSON. The JSON of an answer follows a byte, 1 when the process should be replaced. The
first frame says that the process is ready: a list of the limits that the machine does not have.
"""

import gc
import json
import os
import resource
import signal
import sys
import warnings
from pathlib import Path

_HEADER = 4
_NICENESS = 5
_OPEN_FILES = 16
# The exit code of a process that has no memory left.
OUT_OF_MEMORY = 86
_statm: int | None = None


def _read(size: int) -> bytes:
    """Returns fewer bytes at the end of the input."""
    content = bytearray()
    while len(content) < size:
        chunk = os.read(0, size - len(content))
        if not chunk:
            break
        content += chunk
    return bytes(content)


def _write(content: bytes, *, is_last: bool = False) -> None:
    length = (1 + len(content)).to_bytes(_HEADER, "big")
    frame = memoryview(length + bytes([is_last]) + content)
    while frame:
        frame = frame[os.write(1, frame) :]


def _resident_bytes() -> int:
    """Returns 0 where the system does not tell. The peak of `getrusage` includes the parent's."""
    if _statm is None:
        return 0
    return int(os.pread(_statm, 100, 0).split()[1]) * resource.getpagesize()


def _load() -> None:
    """Imports what evaluations need, and evaluates once: some code is imported at its first use."""
    # The process starts without a path to this code, or with one to another installation.
    sys.path.insert(0, str(Path(__file__).parents[3]))
    from app.templating.evaluation import requests  # noqa: PLC0415

    for text in ("{{ a }}{{ 1 + a }}{{", "{{ '\\u00fc' }}", "{{ a | sort | tojson }}"):
        options = {"free_bytes": 99, "max_chars": None, "as_texts": False}
        request = {"operation": "render", "texts": [[text, ""]], "values": {"a": [1]}, **options}
        requests.respond(json.dumps(request).encode())
    for content in (
        b'{"operation":"check","kind":"template","text":"{{ b }}","names":["a"]}',
        b'{"operation":"evaluate","text":"a.b == \\"c\\"","values":{"a":{"b":"c"}}}',
        b'{"operation":"evaluate","text":"a ==","values":{}}',
    ):
        requests.respond(content)
    sys.path.pop(0)


def _serve(seconds: float, memory_bytes: int) -> None:
    import msgspec  # noqa: PLC0415

    from app.templating.evaluation import requests  # noqa: PLC0415

    while len(header := _read(_HEADER)) == _HEADER:
        # Ends this process when its parent is gone and cannot.
        signal.setitimer(signal.ITIMER_REAL, seconds)
        content = msgspec.json.encode(requests.respond(_read(int.from_bytes(header, "big"))))
        signal.setitimer(signal.ITIMER_REAL, 0)
        # Memory that one tenant's expression has fragmented is not left to the next one.
        _write(content, is_last=_resident_bytes() > memory_bytes // 2)


def main() -> None:
    global _statm  # noqa: PLW0603  # one per process, opened before the process loses its rights
    memory_bytes, seconds, parent = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore")
    # Requests and jobs of all tenants go first.
    os.nice(_NICENESS)
    try:
        _load()
        from app.sandbox import isolation  # noqa: PLC0415

        isolation.close_inherited()
        if sys.platform == "linux":
            _statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        isolation.limit_memory(memory_bytes)
        isolation.limit("RLIMIT_NOFILE", _OPEN_FILES)
        missing = isolation.restrict(parent)
        gc.freeze()
        _write(json.dumps(missing).encode())
        _serve(seconds, memory_bytes)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


if __name__ == "__main__":
    main()
