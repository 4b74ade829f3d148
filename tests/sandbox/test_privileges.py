"""Code uses only harmless devices, gains no rights and imports no package of the application."""

import os
import re
import shutil
from pathlib import Path

import pytest

from app.sandbox.runtimes import packages_dir
from tests.processes import ROOT
from tests.sandbox.sandbox_runner import Attack, Report, SandboxRunner

_DEVICES = Attack(
    python="""
for name in @names@:
    attempt(name, lambda: os.read(os.open("/dev/" + name, os.O_RDONLY | os.O_NONBLOCK), 16))
    attempt(name, lambda: os.close(os.open("/dev/" + name, os.O_WRONLY | os.O_NONBLOCK)))
attempt("null", lambda: open("/dev/null", "w").write("x"))
attempt("null", lambda: open("/dev/null").read())
attempt("urandom", lambda: len(open("/dev/urandom", "rb").read(8)))
attempt("random", lambda: len(open("/dev/random", "rb").read(8)))
""",
    node="""
for (const name of @names@) {
  for (const flags of ["r", "a"]) {
    attempt(name, () => fs.closeSync(fs.openSync("/dev/" + name, flags)));
  }
}
attempt("null", () => fs.writeFileSync("/dev/null", "x"));
attempt("null", () => fs.readFileSync("/dev/null", "utf8"));
for (const name of ["urandom", "random"]) {
  attempt(name, () => fs.readSync(fs.openSync("/dev/" + name), Buffer.alloc(8)));
}
""",
    bash="""
for name in $(echo '@names@' | tr -d "[]',"); do
  attempt $name head -c 16 /dev/$name
  attempt $name sh -c ": >> /dev/$name"
done
attempt null sh -c "echo x > /dev/null"
attempt null cat /dev/null
attempt urandom eval 'head -c 8 /dev/urandom | wc -c'
attempt random eval 'head -c 8 /dev/random | wc -c'
""",
)


_PRIVILEGES = Attack(
    python="""
import subprocess
def run(*words):
    return subprocess.run(words, input=b"", capture_output=True, timeout=3).stdout
for words in (["su", "-c", "id -u"], ["su", "root", "-c", "id -u"], ["sudo", "-n", "id", "-u"],
              ["mount", "-t", "tmpfs", "none", "/tmp"], ["passwd", "-d", "root"]):
    attempt("run", lambda: run(*words))
for number in (os.setuid, os.setgid, os.seteuid, os.setegid):
    attempt("become", lambda: number(0) or "root")
attempt("groups", lambda: os.setgroups([0]) or "root")
print("uid", os.getuid(), os.geteuid(), os.getgid(), os.getegid(), os.getgroups())
""",
    node="""
for (const words of [["su", "-c", "id -u"], ["sudo", "-n", "id", "-u"],
    ["mount", "-t", "tmpfs", "none", "/tmp"], ["passwd", "-d", "root"]]) {
  attempt("run", () => child.spawnSync(words[0], words.slice(1), { timeout: 3000 }).stdout);
}
attempt("become", () => process.setuid(0) || "root");
attempt("become", () => process.setgid(0) || "root");
attempt("become", () => process.setgroups([0]) || "root");
console.log("uid", process.getuid(), process.geteuid(), process.getgid(), process.getgroups());
""",
    bash="""
attempt run su -c "id -u"
attempt run sudo -n id -u
attempt run mount -t tmpfs none /tmp
attempt run passwd -d root
echo uid $(id -u) $(id -ru) $(id -g) $(id -G)
""",
)


# The program is among the packages, where code can run it; its owner runs the tests.
_SETUID = Attack(
    python="""
import subprocess
print("effective", subprocess.run([os.environ["PYTHONPATH"] + "/become", "-u"],
    capture_output=True, text=True).stdout)
""",
    node="""
console.log("effective", shell(process.env.PYTHONPATH + "/become", "-u").split(" ")[1]);
""",
    bash="""
echo effective $("$PYTHONPATH/become" -u)
""",
)
_IMPORTS = Attack(
    python="""
for name in ("litestar", "msgspec", "sqlalchemy", "app.settings", "pip", "cryptography"):
    attempt(name, lambda: __import__(name))
sys.path += ["@site@", "@root@"]
for name in ("litestar", "msgspec", "sqlalchemy", "app.settings", "cryptography"):
    attempt(name, lambda: __import__(name))
import json, sqlite3, ssl, asyncio, hashlib, decimal
asyncio.run(asyncio.sleep(0))
""",
    node="",
    bash="",
)
_ATTACKS = {
    "devices": _DEVICES,
    "privileges": _PRIVILEGES,
    "setuid": _SETUID,
    "imports": _IMPORTS,
}


@pytest.fixture(scope="module")
async def report(runner: SandboxRunner) -> Report:
    program = packages_dir(runner.home) / "become"
    shutil.copyfile("/usr/bin/id", program)
    program.chmod(0o6755)
    try:
        return await runner.run_attacks(
            _ATTACKS,
            names=_list_dangerous_devices(),
            site=Path(pytest.__file__).parent.parent,
            root=ROOT,
        )
    finally:
        program.unlink()


def _list_dangerous_devices() -> list[str]:
    names = [entry.name for entry in os.scandir("/dev") if not entry.is_dir(follow_symlinks=False)]
    names += ["kmsg", "mem", "kmem", "tty", "console", "ptmx", "fuse", "kvm", "net/tun", "shm/x"]
    harmless = {"null", "zero", "random", "urandom", "stdin", "stdout", "stderr", "fd", "core"}
    return sorted(set(names) - harmless)


def test_only_harmless_devices_are_usable(report: Report, subtests: pytest.Subtests) -> None:
    for language, output in report.of("devices"):
        with subtests.test(language=language):
            could = {line.split()[0] for line in output.splitlines() if " could" in line}
            assert could == {"null", "random", "urandom"}
            assert len(re.findall(r"^u?random could 8$", output, re.MULTILINE)) == 2


def test_programs_that_change_the_user_give_no_rights(
    report: Report, subtests: pytest.Subtests
) -> None:
    for language, output in report.of("privileges"):
        with subtests.test(language=language):
            uids = re.findall(r"^uid (.*)$", output, re.MULTILINE)[0]
            assert not re.search(r"\b0\b", uids)
            assert not re.search(r"could (b')?(0|root)\b", output)


def test_a_setuid_program_gives_no_rights(report: Report, subtests: pytest.Subtests) -> None:
    for language, output in report.of("setuid"):
        with subtests.test(language=language):
            uids = re.findall(r"^effective (\d+)$", output, re.MULTILINE)
            assert len(uids) == 1, output
            assert uids != ["0"]


def test_the_packages_of_the_application_cannot_be_imported(report: Report) -> None:
    ((_, output),) = report.of("imports")
    assert " could" not in output
    assert output.count("refused ModuleNotFoundError") == 11
