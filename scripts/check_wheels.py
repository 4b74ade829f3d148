"""Checks that every package of the lock files has a wheel on every platform that Parley supports.

uv resolves each lock for each platform and Python on this machine, without building from source.
While the registry cannot be reached, nothing is checked; that is an error only with
`--require-registry`.
"""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
UV = Path(sys.executable).with_name("uv")

# Without those between them, except in the long run of the tests.
PYTHONS = (
    ("3.11", "3.14")
    if os.environ.get("PARLEY_LONG_TESTS") != "1"
    else ("3.11", "3.12", "3.13", "3.14")
)
LINUX = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")
MACOS = "aarch64-apple-darwin"
MACOS_VERSION = "14.0"


class Target(NamedTuple):
    lock: str
    platform: str
    python: str


class Problem(NamedTuple):
    target: Target
    text: str
    is_unreachable: bool


# The development lock holds all of requirements.lock; tests run on Linux only.
TARGETS = [
    *[
        Target("requirements-dev.lock", platform, python)
        for platform in LINUX
        for python in PYTHONS
    ],
    *[Target("requirements.lock", MACOS, python) for python in PYTHONS],
    *[Target("scripts/uv.lock", platform, PYTHONS[0]) for platform in (*LINUX, MACOS)],
]


def resolve(target: Target, folder: str) -> Problem | None:
    """Returns the reason why a lock cannot be installed. `folder` is empty and stays empty."""
    command = [
        str(UV), "pip", "install", "--dry-run", "--quiet", "--no-deps", "--require-hashes",
        "--only-binary", ":all:", "--python", sys.executable, "--target", folder,
        "--python-platform", target.platform, "--python-version", target.python,
        "-r", str(ROOT / target.lock),
    ]  # fmt: skip
    env = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": MACOS_VERSION}
    result = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return None
    causes = [line for line in result.stderr.splitlines() if line.strip().startswith("cause:")]
    text = causes[-1].strip() if causes else result.stderr.strip()
    return Problem(target, text, "Failed to fetch" in result.stderr)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = list(filter(None, pool.map(lambda target: resolve(target, folder), TARGETS)))
    for target, text, is_unreachable in problems:
        if not is_unreachable:
            print(f"{target.lock} on {target.platform}, Python {target.python}: {text}")
    unreachable = [problem for problem in problems if problem.is_unreachable]
    if unreachable:
        print(f"wheels were not checked, the registry cannot be reached: {unreachable[0].text}")
    required = "--require-registry" in sys.argv
    return int(any(required or not problem.is_unreachable for problem in problems))


if __name__ == "__main__":
    sys.exit(main())
