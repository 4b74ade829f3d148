"""Code sees nothing of the machine but itself, its interpreter and /usr."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from app.kit.sandbox.program import Language
from tests.processes import ROOT
from tests.sandbox.sandbox_runner import Attack, SandboxRunner, run_neighbour

_ENVIRONMENT = Attack(
    python="""
print(dict(os.environ))
for pid in [*range(1, 400), *range(@pid@ - 50, @pid@ + 50), "self", os.getppid(), @other@]:
    try:
        print(open(f"/proc/{pid}/environ", "rb").read())
    except OSError:
        pass
""",
    node="""
console.log(process.env);
for (const pid of [1, "self", process.ppid, @pid@, @other@]) {
  attempt(pid, () => fs.readFileSync(`/proc/${pid}/environ`, "utf8"));
}
""",
    bash="""
export; set
for pid in 1 self $PPID @pid@ @other@; do attempt $pid cat /proc/$pid/environ; done
""",
)


async def test_the_environment_of_the_worker_is_hidden(
    runner: SandboxRunner,
    language: Language,
    secret: str,
    same_user: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARLEY_PLANTED", secret)
    with run_neighbour(same_user, Path("/"), PARLEY_PLANTED=secret) as other:
        output = await runner.run_attack(language, _ENVIRONMENT, pid=os.getpid(), other=other.pid)
    assert secret not in output
    assert "PARLEY" not in output


_PROCESSES = Attack(
    python="""
attempt("list", lambda: [name for name in os.listdir("/proc") if name.isdigit()])
for pid in (@other@, 1, "self", os.getppid()):
    for name in ("cmdline", "environ", "maps", "status", "mem"):
        attempt(name, lambda: open(f"/proc/{pid}/{name}", "rb").read(2000))
    for name in ("cwd", "root", "exe"):
        attempt(name, lambda: os.readlink(f"/proc/{pid}/{name}"))
    attempt("through root", lambda: open(f"/proc/{pid}/root@file@").read())
    attempt("through cwd", lambda: open(f"/proc/{pid}/cwd/planted").read())
    attempt("fd", lambda: os.listdir(f"/proc/{pid}/fd"))
""",
    node="""
attempt("list", () => fs.readdirSync("/proc").filter((name) => /^\\d+$/.test(name)));
for (const pid of [@other@, 1, "self", process.ppid]) {
  for (const name of ["cmdline", "environ", "maps", "status"]) {
    attempt(name, () => fs.readFileSync(`/proc/${pid}/${name}`, "utf8"));
  }
  for (const name of ["cwd", "root", "exe"]) {
    attempt(name, () => fs.readlinkSync(`/proc/${pid}/${name}`));
  }
  attempt("through root", () => fs.readFileSync(`/proc/${pid}/root@file@`, "utf8"));
  attempt("through cwd", () => fs.readFileSync(`/proc/${pid}/cwd/planted`, "utf8"));
  attempt("fd", () => fs.readdirSync(`/proc/${pid}/fd`));
}
""",
    bash="""
attempt list ls /proc
for pid in @other@ 1 self $PPID; do
  for name in cmdline environ maps status; do attempt $name cat /proc/$pid/$name; done
  for name in cwd root exe; do attempt $name ls /proc/$pid/$name/; done
  for name in cwd root exe; do attempt $name readlink /proc/$pid/$name/.; done
  attempt through-root cat /proc/$pid/root@file@
  attempt through-cwd cat /proc/$pid/cwd/planted
  attempt fd ls /proc/$pid/fd
done
attempt ps ps -ef
""",
)


async def test_other_processes_cannot_be_inspected(
    runner: SandboxRunner, language: Language, secret: str, same_user: int, open_folder: Path
) -> None:
    planted = open_folder / "planted"
    planted.write_text(secret)
    with run_neighbour(same_user, open_folder, PARLEY_PLANTED=secret) as other:
        output = await runner.run_attack(language, _PROCESSES, other=other.pid, file=planted)
    assert secret not in output
    # Its own entry in /proc, if there is one, shows a process only itself.
    assert not re.search(
        r"^(list|cmdline|environ|maps|status|fd|ps|through \w+) could", output, re.MULTILINE
    )


_FILES = Attack(
    python="""
for place in @places@:
    attempt("read", lambda: open(place, "rb").read(4000))
    attempt("map", lambda: os.pread(os.open(place, os.O_RDONLY), 4000, 0))
    attempt("list", lambda: os.listdir(os.path.dirname(place)))
    attempt("climb", lambda: open("/usr/../../.." + place, "rb").read(4000))
""",
    node="""
for (const place of @places@) {
  attempt("read", () => fs.readFileSync(place, "utf8"));
  attempt("list", () => fs.readdirSync(path.dirname(place)));
  attempt("climb", () => fs.readFileSync("/usr/../../.." + place, "utf8"));
  attempt("require", () => require(place));
}
""",
    bash="""
for place in $(echo '@places@' | tr -d "[]',\\""); do
  attempt read cat "$place"
  attempt list ls "${place%/*}"
  attempt climb cat "/usr/../../..$place"
  attempt source source "$place"
  attempt redirect read -r line < "$place"
done
""",
)


async def test_files_of_the_machine_cannot_be_read(
    runner: SandboxRunner, language: Language, secret: str, open_folder: Path
) -> None:
    planted = open_folder / "planted"
    data = runner.home / "data"
    data.mkdir(exist_ok=True)
    data.chmod(0o755)
    for file in (planted, data / "key"):
        file.write_text(secret)
        file.chmod(0o644)
    paths = [str(planted), str(data / "key"), str(ROOT / "pyproject.toml")]
    paths += ["/etc/passwd", "/etc/shadow", "/etc/hosts", "/root/.bashrc", "/var/log/dpkg.log"]
    output = await runner.run_attack(language, _FILES, places=paths)
    assert secret not in output
    assert "root:" not in output
    assert "[project]" not in output
    assert not re.search(r"^(read|map|climb|require|source|redirect) could", output, re.MULTILINE)
    # Commands need this folder of /etc.
    assert set(re.findall(r"^list could (.*)$", output, re.MULTILINE)) <= {
        "alternatives",
        "['alternatives']",
    }


_EXISTENCE = Attack(
    python="""
for place in @places@:
    attempt("there", lambda: os.stat(place).st_size)
""",
    node="""
for (const place of @places@) attempt("there", () => fs.statSync(place).size);
""",
    bash="""
for place in $(echo '@places@' | tr -d "[]',\\""); do attempt there stat "$place"; done
""",
)


@pytest.mark.parametrize("runner", ["bubblewrap"], indirect=True)
async def test_in_the_stronger_tier_files_of_the_machine_do_not_exist(
    runner: SandboxRunner, language: Language, open_folder: Path
) -> None:
    """Landlock hides the content of a file, not its existence."""
    (open_folder / "planted").touch()
    paths = [str(open_folder / "planted"), str(ROOT), str(runner.home), "/etc/passwd", "/proc/1"]
    paths += ["/home", "/root", "/var", "/sys", "/run", "/dev/shm", "/dev/pts", "/etc/ssl"]
    output = await runner.run_attack(language, _EXISTENCE, places=paths)
    assert "there could" not in output


_OWN_FOLDERS = Attack(
    python="""
attempt("runs", lambda: os.listdir("@runs@"))
for name in ("@other@", "/code/../" + os.path.basename("@other@")):
    attempt("list", lambda: os.listdir(name))
    attempt("read", lambda: open(name + "/main").read())
""",
    node="""
attempt("runs", () => fs.readdirSync("@runs@"));
attempt("list", () => fs.readdirSync("@other@"));
attempt("read", () => fs.readFileSync("@other@/main", "utf8"));
""",
    bash="""
attempt runs ls @runs@
attempt list ls @other@
attempt read cat @other@/main
""",
)


async def test_the_code_of_another_run_cannot_be_read(
    runner: SandboxRunner, language: Language, secret: str, same_user: int
) -> None:
    """Not even with the same user, which all runs of bubblewrap have."""
    runs = runner.home / "runs"
    other = runs / "another"
    other.mkdir()
    (other / "main").write_text(secret)
    for path in (other, other / "main"):
        path.chmod(0o500)
        if os.geteuid() == 0:
            os.chown(path, same_user, same_user)
    try:
        output = await runner.run_attack(language, _OWN_FOLDERS, runs=runs, other=other)
    finally:
        other.chmod(0o700)
        (other / "main").unlink()
        other.rmdir()
    assert secret not in output
    assert not re.search(r"^\w+ could", output, re.MULTILINE)


def test_the_attacks_find_the_secret_outside_the_sandbox(open_folder: Path, secret: str) -> None:
    """Outside the sandbox, the attack does read the planted secret."""
    planted = open_folder / "planted"
    planted.write_text(secret)
    code = _FILES.code("bash", {"places": [str(planted)]})
    completed = subprocess.run(
        ["/usr/bin/bash", "-c", code], capture_output=True, text=True, check=True
    )
    assert completed.stdout.count(secret) >= 2
