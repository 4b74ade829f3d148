"""Small programs of ours in a process of their own, for what cannot be stopped otherwise.

A library call that holds a thread for as long as its input likes ends with its process: by the
kernel's limits, by its time, or because whoever waits for it is cancelled.
"""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

_START = """
import resource, runpy, sys
script, cpu, memory, file = sys.argv[1], *map(int, sys.argv[2:5])
for limit, value in (
    (resource.RLIMIT_CPU, cpu),
    # macOS refuses any limit of address space.
    *([(resource.RLIMIT_AS, memory)] if sys.platform != "darwin" else []),
    (resource.RLIMIT_FSIZE, file),
    (resource.RLIMIT_CORE, 0),
):
    hard = resource.getrlimit(limit)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (value, value))
runpy.run_path(script, run_name="__main__")
"""
_MIB = 1024 * 1024


class Ended(Exception):
    """It gave no answer: a limit or an error ended it."""


async def run(
    script: Path,
    given: bytes,
    *,
    cpu_seconds: int,
    memory_mib: int = 1024,
    file_mib: int = 1,
    answer_bytes: int = 8 * _MIB,
) -> bytes:
    """What the script prints, given its input on standard input. It sees no environment."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-c",
        _START,
        str(script),
        str(cpu_seconds),
        str(memory_mib * _MIB),
        str(file_mib * _MIB),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )
    try:
        answer = await _talked(process, given, answer_bytes)
        if await process.wait() != 0:
            raise Ended(f"ended with {process.returncode}")
        return answer
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _talked(process: asyncio.subprocess.Process, given: bytes, limit: int) -> bytes:
    stdin, stdout = process.stdin, process.stdout
    if stdin is None or stdout is None:
        raise Ended("no pipes")
    with suppress(ConnectionError):
        stdin.write(given)
        await stdin.drain()
    stdin.close()
    answer = bytearray()
    while chunk := await stdout.read(64 * 1024):
        answer += chunk
        if len(answer) > limit:
            raise Ended("said too much")
    return bytes(answer)
