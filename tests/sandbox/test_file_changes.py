"""Code cannot link to, change or watch files of the machine."""

import os
from pathlib import Path

from app.kit.sandbox.program import Language
from tests.sandbox.sandbox_runner import Attack, SandboxRunner, list_names

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


async def test_links_give_no_access(
    runner: SandboxRunner, language: Language, secret: str, same_user: int, open_folder: Path
) -> None:
    planted, link = open_folder / "planted", open_folder / "link"
    planted.write_text(secret)
    planted.chmod(0o666)
    link.symlink_to(planted)
    if os.geteuid() == 0:
        os.chown(planted, same_user, same_user)
    output = await runner.run_attack(language, _LINKS, folder=open_folder, file=planted, link=link)
    assert secret not in output
    assert planted.read_text() == secret
    assert planted.stat().st_nlink == 1
    assert list_names(open_folder) == ["link", "planted"]


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
    runner: SandboxRunner, language: Language, same_user: int, open_folder: Path
) -> None:
    """Neither the content nor the metadata, which Landlock lets the owner change."""
    planted = open_folder / "planted"
    planted.write_text("as it was")
    planted.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(planted, same_user, same_user)
    before = planted.stat()
    await runner.run_attack(language, _CHANGES, file=planted)
    after = planted.stat()
    assert planted.read_text() == "as it was"
    assert (after.st_mode, after.st_mtime, after.st_ctime_ns) == (
        before.st_mode,
        before.st_mtime,
        before.st_ctime_ns,
    )
    assert list_names(open_folder) == ["planted"]


async def test_file_names_of_others_cannot_be_watched(
    runner: SandboxRunner, open_folder: Path
) -> None:
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
    assert "watching False" in await runner.run_attack("python", attack, folder=open_folder)
