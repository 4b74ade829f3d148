"""Code sees nothing of the machine but itself, its interpreter and /usr."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.processes import ROOT
from tests.sandbox.sandbox_runner import (
    Attack,
    Report,
    SandboxRunner,
    create_open_folder,
    new_secret,
    run_neighbour,
)

_ENVIRONMENT = Attack(
    python="""
print(dict(os.environ))
near = range(@worker@ - 50, @worker@ + 50)
for pid in [*range(1, 400), *near, "self", os.getppid(), @neighbour@]:
    try:
        print(open(f"/proc/{pid}/environ", "rb").read())
    except OSError:
        pass
""",
    node="""
console.log(process.env);
for (const pid of [1, "self", process.ppid, @worker@, @neighbour@]) {
  attempt(pid, () => fs.readFileSync(`/proc/${pid}/environ`, "utf8"));
}
""",
    bash="""
export; set
for pid in 1 self $PPID @worker@ @neighbour@; do attempt $pid cat /proc/$pid/environ; done
""",
)


_PROCESSES = Attack(
    python="""
attempt("list", lambda: [name for name in os.listdir("/proc") if name.isdigit()])
for pid in (@neighbour@, 1, "self", os.getppid()):
    for name in ("cmdline", "environ", "maps", "status", "mem"):
        attempt(name, lambda: open(f"/proc/{pid}/{name}", "rb").read(2000))
    for name in ("cwd", "root", "exe"):
        attempt(name, lambda: os.readlink(f"/proc/{pid}/{name}"))
    attempt("through root", lambda: open(f"/proc/{pid}/root@planted@").read())
    attempt("through cwd", lambda: open(f"/proc/{pid}/cwd/planted").read())
    attempt("fd", lambda: os.listdir(f"/proc/{pid}/fd"))
""",
    node="""
attempt("list", () => fs.readdirSync("/proc").filter((name) => /^\\d+$/.test(name)));
for (const pid of [@neighbour@, 1, "self", process.ppid]) {
  for (const name of ["cmdline", "environ", "maps", "status"]) {
    attempt(name, () => fs.readFileSync(`/proc/${pid}/${name}`, "utf8"));
  }
  for (const name of ["cwd", "root", "exe"]) {
    attempt(name, () => fs.readlinkSync(`/proc/${pid}/${name}`));
  }
  attempt("through root", () => fs.readFileSync(`/proc/${pid}/root@planted@`, "utf8"));
  attempt("through cwd", () => fs.readFileSync(`/proc/${pid}/cwd/planted`, "utf8"));
  attempt("fd", () => fs.readdirSync(`/proc/${pid}/fd`));
}
""",
    bash="""
attempt list ls /proc
for pid in @neighbour@ 1 self $PPID; do
  for name in cmdline environ maps status; do attempt $name cat /proc/$pid/$name; done
  for name in cwd root exe; do attempt $name ls /proc/$pid/$name/; done
  for name in cwd root exe; do attempt $name readlink /proc/$pid/$name/.; done
  attempt through-root cat /proc/$pid/root@planted@
  attempt through-cwd cat /proc/$pid/cwd/planted
  attempt fd ls /proc/$pid/fd
done
attempt ps ps -ef
""",
)


_FILES = Attack(
    python="""
for place in @readable@:
    attempt("read", lambda: open(place, "rb").read(4000))
    attempt("map", lambda: os.pread(os.open(place, os.O_RDONLY), 4000, 0))
    attempt("list", lambda: os.listdir(os.path.dirname(place)))
    attempt("climb", lambda: open("/usr/../../.." + place, "rb").read(4000))
""",
    node="""
for (const place of @readable@) {
  attempt("read", () => fs.readFileSync(place, "utf8"));
  attempt("list", () => fs.readdirSync(path.dirname(place)));
  attempt("climb", () => fs.readFileSync("/usr/../../.." + place, "utf8"));
  attempt("require", () => require(place));
}
""",
    bash="""
for place in $(echo '@readable@' | tr -d "[]',\\""); do
  attempt read cat "$place"
  attempt list ls "${place%/*}"
  attempt climb cat "/usr/../../..$place"
  attempt source source "$place"
  attempt redirect read -r line < "$place"
done
""",
)


_EXISTENCE = Attack(
    python="""
for place in @existing@:
    attempt("there", lambda: os.stat(place).st_size)
""",
    node="""
for (const place of @existing@) attempt("there", () => fs.statSync(place).size);
""",
    bash="""
for place in $(echo '@existing@' | tr -d "[]',\\""); do attempt there stat "$place"; done
""",
)


_OTHER_RUN = Attack(
    python="""
attempt("runs", lambda: os.listdir("@runs@"))
for name in ("@run@", "/code/../" + os.path.basename("@run@")):
    attempt("list", lambda: os.listdir(name))
    attempt("read", lambda: open(name + "/main").read())
""",
    node="""
attempt("runs", () => fs.readdirSync("@runs@"));
attempt("list", () => fs.readdirSync("@run@"));
attempt("read", () => fs.readFileSync("@run@/main", "utf8"));
""",
    bash="""
attempt runs ls @runs@
attempt list ls @run@
attempt read cat @run@/main
""",
)


_ATTACKS = {
    "environment": _ENVIRONMENT,
    "processes": _PROCESSES,
    "files": _FILES,
    "existence": _EXISTENCE,
    "another run": _OTHER_RUN,
}


class Target(NamedTuple):
    secret: str
    report: Report


@pytest.fixture(scope="module")
async def target(runner: SandboxRunner) -> Target:
    """A secret in the environment, files and processes of the machine, and what attacks printed."""
    secret = new_secret()
    with create_open_folder() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARLEY_PLANTED", secret)
        key = runner.home / "data" / "key"
        key.parent.mkdir(exist_ok=True)
        key.parent.chmod(0o755)
        for file in (folder / "planted", key):
            file.write_text(secret)
            file.chmod(0o644)
        async with runner.as_one_user() as uid:
            with (
                run_neighbour(uid, folder, PARLEY_PLANTED=secret) as neighbour,
                _create_run(runner.home / "runs" / "another", secret, uid) as run,
            ):
                report = await runner.run_attacks(
                    _ATTACKS,
                    worker=os.getpid(),
                    neighbour=neighbour.pid,
                    planted=folder / "planted",
                    readable=_list_readable(folder / "planted", key),
                    existing=_list_existing(folder / "planted", runner.home),
                    runs=run.parent,
                    run=run,
                )
    return Target(secret, report)


@contextmanager
def _create_run(folder: Path, secret: str, uid: int) -> Iterator[Path]:
    """The folder of another run, of the same user."""
    folder.mkdir()
    (folder / "main").write_text(secret)
    for path in (folder, folder / "main"):
        path.chmod(0o500)
        if os.geteuid() == 0:
            os.chown(path, uid, uid)
    try:
        yield folder
    finally:
        folder.chmod(0o700)
        (folder / "main").unlink()
        folder.rmdir()


def _list_readable(*planted: Path) -> list[str]:
    paths = [*map(str, planted), str(ROOT / "pyproject.toml"), "/etc/passwd", "/etc/shadow"]
    return [*paths, "/etc/hosts", "/root/.bashrc", "/var/log/dpkg.log"]


def _list_existing(*paths: Path) -> list[str]:
    existing = [*map(str, paths), str(ROOT), "/etc/passwd", "/proc/1", "/home", "/root", "/var"]
    return [*existing, "/sys", "/run", "/dev/shm", "/dev/pts", "/etc/ssl"]


def test_the_environment_of_the_worker_is_hidden(target: Target, subtests: pytest.Subtests) -> None:
    for language, output in target.report.of("environment"):
        with subtests.test(language=language):
            assert target.secret not in output
            assert "PARLEY" not in output


def test_other_processes_cannot_be_inspected(target: Target, subtests: pytest.Subtests) -> None:
    for language, output in target.report.of("processes"):
        with subtests.test(language=language):
            assert target.secret not in output
            # Its own entry in /proc, if there is one, shows a process only itself.
            assert not re.search(
                r"^(list|cmdline|environ|maps|status|fd|ps|through \w+) could",
                output,
                re.MULTILINE,
            )


def test_files_of_the_machine_cannot_be_read(target: Target, subtests: pytest.Subtests) -> None:
    for language, output in target.report.of("files"):
        with subtests.test(language=language):
            assert target.secret not in output
            assert "root:" not in output
            assert "[project]" not in output
            assert not re.search(
                r"^(read|map|climb|require|source|redirect) could", output, re.MULTILINE
            )
            # Commands need this folder of /etc.
            assert set(re.findall(r"^list could (.*)$", output, re.MULTILINE)) <= {
                "alternatives",
                "['alternatives']",
            }


def test_in_the_stronger_tier_files_of_the_machine_do_not_exist(
    runner: SandboxRunner, target: Target, subtests: pytest.Subtests
) -> None:
    """Landlock hides the content of a file, not its existence."""
    for language, output in target.report.of("existence"):
        with subtests.test(language=language):
            assert ("there could" in output) == (runner.tier == "landlock")


def test_the_code_of_another_run_cannot_be_read(target: Target, subtests: pytest.Subtests) -> None:
    """Not even with the same user, which all runs of bubblewrap have."""
    for language, output in target.report.of("another run"):
        with subtests.test(language=language):
            assert target.secret not in output
            assert not re.search(r"^\w+ could", output, re.MULTILINE)


def test_the_attacks_find_the_secret_outside_the_sandbox(open_folder: Path, secret: str) -> None:
    """Outside the sandbox, the attack does read the planted secret."""
    planted = open_folder / "planted"
    planted.write_text(secret)
    code = _FILES.code("bash", {"readable": [str(planted)]})
    completed = subprocess.run(
        ["/usr/bin/bash", "-c", code], capture_output=True, text=True, check=True
    )
    assert completed.stdout.count(secret) >= 2
