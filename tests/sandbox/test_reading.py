"""What code gets to see of the machine: nothing but itself, its interpreter and /usr."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from app.kit.sandbox.program import Language
from app.kit.sandbox.runtimes import packages_dir
from tests.processes import ROOT
from tests.sandbox.cage import Attack, Cage, names_in, neighbour

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


async def test_the_environment_of_the_worker_is_not_there(
    cage: Cage, language: Language, secret: str, same_user: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARLEY_PLANTED", secret)
    with neighbour(same_user, Path("/"), PARLEY_PLANTED=secret) as other:
        said = await cage.attack(language, _ENVIRONMENT, pid=os.getpid(), other=other.pid)
    assert secret not in said
    assert "PARLEY" not in said


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


async def test_other_processes_cannot_be_looked_into(
    cage: Cage, language: Language, secret: str, same_user: int, open_folder: Path
) -> None:
    planted = open_folder / "planted"
    planted.write_text(secret)
    with neighbour(same_user, open_folder, PARLEY_PLANTED=secret) as other:
        said = await cage.attack(language, _PROCESSES, other=other.pid, file=planted)
    assert secret not in said
    # Through its own entry, where there is one, a process sees no more than itself.
    assert not re.search(
        r"^(list|cmdline|environ|maps|status|fd|ps|through \w+) could", said, re.MULTILINE
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
    cage: Cage, language: Language, secret: str, open_folder: Path
) -> None:
    planted = open_folder / "planted"
    data = cage.home / "data"
    data.mkdir(exist_ok=True)
    data.chmod(0o755)
    for file in (planted, data / "key"):
        file.write_text(secret)
        file.chmod(0o644)
    places = [str(planted), str(data / "key"), str(ROOT / "pyproject.toml")]
    places += ["/etc/passwd", "/etc/shadow", "/etc/hosts", "/root/.bashrc", "/var/log/dpkg.log"]
    said = await cage.attack(language, _FILES, places=places)
    assert secret not in said
    assert "root:" not in said
    assert "[project]" not in said
    assert not re.search(r"^(read|map|climb|require|source|redirect) could", said, re.MULTILINE)
    # The one thing of /etc that commands need.
    assert set(re.findall(r"^list could (.*)$", said, re.MULTILINE)) <= {
        "alternatives",
        "['alternatives']",
    }


_THERE = Attack(
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


@pytest.mark.parametrize("cage", ["bubblewrap"], indirect=True)
async def test_in_the_stronger_tier_files_of_the_machine_do_not_exist(
    cage: Cage, language: Language, open_folder: Path
) -> None:
    """Landlock hides what is in a file, not that there is one."""
    (open_folder / "planted").touch()
    places = [str(open_folder / "planted"), str(ROOT), str(cage.home), "/etc/passwd", "/proc/1"]
    places += ["/home", "/root", "/var", "/sys", "/run", "/dev/shm", "/dev/pts", "/etc/ssl"]
    said = await cage.attack(language, _THERE, places=places)
    assert "there could" not in said


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
    cage: Cage, language: Language, secret: str, same_user: int
) -> None:
    """Not even where it belongs to the same user, as with bubblewrap it always does."""
    runs = cage.home / "runs"
    other = runs / "another"
    other.mkdir()
    (other / "main").write_text(secret)
    for path in (other, other / "main"):
        path.chmod(0o500)
        if os.geteuid() == 0:
            os.chown(path, same_user, same_user)
    try:
        said = await cage.attack(language, _OWN_FOLDERS, runs=runs, other=other)
    finally:
        other.chmod(0o700)
        (other / "main").unlink()
        other.rmdir()
    assert secret not in said
    assert not re.search(r"^\w+ could", said, re.MULTILINE)


_LINKS = Attack(
    python="""
for folder in ("/tmp", ".", "@folder@", os.environ["HOME"]):
    attempt("symbolic", lambda: os.symlink("@file@", folder + "/symbolic"))
    attempt("read", lambda: open(folder + "/symbolic").read())
    attempt("write", lambda: open(folder + "/symbolic", "w").write("overwritten"))
    attempt("hard", lambda: os.link("@file@", folder + "/hard"))
    attempt("read", lambda: open(folder + "/hard").read())
    attempt("follow", lambda: open("@link@").read())
    attempt("rename", lambda: os.rename("@file@", folder + "/renamed"))
""",
    node="""
for (const folder of ["/tmp", ".", "@folder@", process.env.HOME]) {
  attempt("symbolic", () => fs.symlinkSync("@file@", folder + "/symbolic"));
  attempt("read", () => fs.readFileSync(folder + "/symbolic", "utf8"));
  attempt("write", () => fs.writeFileSync(folder + "/symbolic", "overwritten"));
  attempt("hard", () => fs.linkSync("@file@", folder + "/hard"));
  attempt("read", () => fs.readFileSync(folder + "/hard", "utf8"));
  attempt("follow", () => fs.readFileSync("@link@", "utf8"));
  attempt("rename", () => fs.renameSync("@file@", folder + "/renamed"));
}
""",
    bash="""
for folder in /tmp . @folder@ "$HOME"; do
  attempt symbolic ln -s @file@ "$folder/symbolic"
  attempt read cat "$folder/symbolic"
  attempt write sh -c "echo overwritten > $folder/symbolic"
  attempt hard ln @file@ "$folder/hard"
  attempt read cat "$folder/hard"
  attempt follow cat @link@
  attempt rename mv @file@ "$folder/renamed"
done
""",
)


async def test_links_lead_nowhere(
    cage: Cage, language: Language, secret: str, same_user: int, open_folder: Path
) -> None:
    planted, link = open_folder / "planted", open_folder / "link"
    planted.write_text(secret)
    planted.chmod(0o666)
    link.symlink_to(planted)
    if os.geteuid() == 0:
        os.chown(planted, same_user, same_user)
    said = await cage.attack(language, _LINKS, folder=open_folder, file=planted, link=link)
    assert secret not in said
    assert planted.read_text() == secret
    assert planted.stat().st_nlink == 1
    assert names_in(open_folder) == ["link", "planted"]


_CHANGES = Attack(
    python="""
attempt("mode", lambda: os.chmod("@file@", 0o4777))
attempt("times", lambda: os.utime("@file@", (1, 1)))
attempt("attribute", lambda: os.setxattr("@file@", "user.planted", b"1"))
attempt("owner", lambda: os.chown("@file@", -1, os.getgid()))
attempt("length", lambda: os.truncate("@file@", 0))
attempt("write", lambda: open("@file@", "a").write("more"))
attempt("remove", lambda: os.remove("@file@"))
attempt("make", lambda: os.mkdir("@file@-folder"))
""",
    node="""
attempt("mode", () => fs.chmodSync("@file@", 0o4777));
attempt("times", () => fs.utimesSync("@file@", 1, 1));
attempt("owner", () => fs.chownSync("@file@", process.getuid(), process.getgid()));
attempt("length", () => fs.truncateSync("@file@", 0));
attempt("write", () => fs.appendFileSync("@file@", "more"));
attempt("remove", () => fs.unlinkSync("@file@"));
attempt("make", () => fs.mkdirSync("@file@-folder"));
""",
    bash="""
attempt mode chmod 4777 @file@
attempt times touch -d @1 @file@
attempt length truncate -s 0 @file@
attempt write sh -c "echo more >> @file@"
attempt remove rm -f @file@
attempt make mkdir @file@-folder
""",
)


async def test_a_file_of_the_same_user_cannot_be_changed(
    cage: Cage, language: Language, same_user: int, open_folder: Path
) -> None:
    """Neither what is in it nor what is written about it: its owner may do the latter."""
    planted = open_folder / "planted"
    planted.write_text("as it was")
    planted.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(planted, same_user, same_user)
    before = planted.stat()
    await cage.attack(language, _CHANGES, file=planted)
    after = planted.stat()
    assert planted.read_text() == "as it was"
    assert (after.st_mode, after.st_mtime, after.st_ctime_ns) == (
        before.st_mode,
        before.st_mtime,
        before.st_ctime_ns,
    )
    assert names_in(open_folder) == ["planted"]


async def test_nobody_watches_what_others_name_their_files(cage: Cage, open_folder: Path) -> None:
    attack = Attack(
        python="""
import ctypes
libc = ctypes.CDLL(None)
watch = libc.inotify_init1(0)
print("watching", libc.inotify_add_watch(watch, b"@folder@", 0xFFF) >= 0)
""",
        node="",
        bash="",
    )
    assert "watching False" in await cage.attack("python", attack, folder=open_folder)


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


async def test_only_harmless_devices_are_usable(cage: Cage, language: Language) -> None:
    names = [entry.name for entry in os.scandir("/dev") if not entry.is_dir(follow_symlinks=False)]
    names += ["kmsg", "mem", "kmem", "tty", "console", "ptmx", "fuse", "kvm", "net/tun", "shm/x"]
    harmless = {"null", "zero", "random", "urandom", "stdin", "stdout", "stderr", "fd", "core"}
    dangerous = sorted(set(names) - harmless)
    said = await cage.attack(language, _DEVICES, names=dangerous)
    could = {line.split()[0] for line in said.splitlines() if " could" in line}
    assert could == {"null", "random", "urandom"}
    assert len(re.findall(r"^u?random could 8$", said, re.MULTILINE)) == 2


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


async def test_programs_that_change_the_user_give_nothing(cage: Cage, language: Language) -> None:
    said = await cage.attack(language, _PRIVILEGES)
    uids = re.findall(r"^uid (.*)$", said, re.MULTILINE)[0]
    assert not re.search(r"\b0\b", uids)
    assert not re.search(r"could (b')?(0|root)\b", said)


async def test_a_setuid_program_within_reach_gives_nothing(cage: Cage, language: Language) -> None:
    """Among the packages, where the code can start it; it would make one whoever runs the tests."""
    program = packages_dir(cage.home) / "become"
    shutil.copyfile("/usr/bin/id", program)
    program.chmod(0o6755)
    attack = Attack(
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
    try:
        said = await cage.attack(language, attack)
    finally:
        program.unlink()
    found = re.findall(r"^effective (\d+)$", said, re.MULTILINE)
    assert len(found) == 1, said
    assert found != ["0"]


async def test_the_packages_of_the_application_cannot_be_imported(cage: Cage) -> None:
    attack = Attack(
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
    site = Path(pytest.__file__).parent.parent
    said = await cage.attack("python", attack, site=site, root=ROOT)
    assert " could" not in said
    assert said.count("refused ModuleNotFoundError") == 11


def test_there_is_a_real_secret_to_find(open_folder: Path, secret: str) -> None:
    """The attacks do see what was planted when nobody is caged."""
    planted = open_folder / "planted"
    planted.write_text(secret)
    code = _FILES.code("bash", {"places": [str(planted)]})
    said = subprocess.run(["/usr/bin/bash", "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.count(secret) >= 2
