"""Code cannot link to, change or watch files of the machine."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.sandbox.sandbox_runner import (
    Attack,
    Report,
    SandboxRunner,
    create_open_folder,
    list_names,
    new_secret,
)

_LINKS = Attack(
    python="""
for folder in ("/tmp", ".", "@folder@", os.environ["HOME"]):
    attempt("symbolic", lambda: os.symlink("@linked@", folder + "/symbolic"))
    attempt("read", lambda: open(folder + "/symbolic").read())
    attempt("write", lambda: open(folder + "/symbolic", "w").write("overwritten"))
    attempt("hard", lambda: os.link("@linked@", folder + "/hard"))
    attempt("read", lambda: open(folder + "/hard").read())
    attempt("follow", lambda: open("@link@").read())
    attempt("rename", lambda: os.rename("@linked@", folder + "/renamed"))
""",
    node="""
for (const folder of ["/tmp", ".", "@folder@", process.env.HOME]) {
  attempt("symbolic", () => fs.symlinkSync("@linked@", folder + "/symbolic"));
  attempt("read", () => fs.readFileSync(folder + "/symbolic", "utf8"));
  attempt("write", () => fs.writeFileSync(folder + "/symbolic", "overwritten"));
  attempt("hard", () => fs.linkSync("@linked@", folder + "/hard"));
  attempt("read", () => fs.readFileSync(folder + "/hard", "utf8"));
  attempt("follow", () => fs.readFileSync("@link@", "utf8"));
  attempt("rename", () => fs.renameSync("@linked@", folder + "/renamed"));
}
""",
    bash="""
for folder in /tmp . @folder@ "$HOME"; do
  attempt symbolic ln -s @linked@ "$folder/symbolic"
  attempt read cat "$folder/symbolic"
  attempt write sh -c "echo overwritten > $folder/symbolic"
  attempt hard ln @linked@ "$folder/hard"
  attempt read cat "$folder/hard"
  attempt follow cat @link@
  attempt rename mv @linked@ "$folder/renamed"
done
""",
)


_CHANGES = Attack(
    python="""
attempt("mode", lambda: os.chmod("@changed@", 0o4777))
attempt("times", lambda: os.utime("@changed@", (1, 1)))
attempt("attribute", lambda: os.setxattr("@changed@", "user.planted", b"1"))
attempt("owner", lambda: os.chown("@changed@", -1, os.getgid()))
attempt("length", lambda: os.truncate("@changed@", 0))
attempt("write", lambda: open("@changed@", "a").write("more"))
attempt("remove", lambda: os.remove("@changed@"))
attempt("make", lambda: os.mkdir("@changed@-folder"))
""",
    node="""
attempt("mode", () => fs.chmodSync("@changed@", 0o4777));
attempt("times", () => fs.utimesSync("@changed@", 1, 1));
attempt("owner", () => fs.chownSync("@changed@", process.getuid(), process.getgid()));
attempt("length", () => fs.truncateSync("@changed@", 0));
attempt("write", () => fs.appendFileSync("@changed@", "more"));
attempt("remove", () => fs.unlinkSync("@changed@"));
attempt("make", () => fs.mkdirSync("@changed@-folder"));
""",
    bash="""
attempt mode chmod 4777 @changed@
attempt times touch -d @1 @changed@
attempt length truncate -s 0 @changed@
attempt write sh -c "echo more >> @changed@"
attempt remove rm @changed@
attempt make mkdir @changed@-folder
""",
)


_WATCHING = Attack(
    python="""
import ctypes
libc = ctypes.CDLL(None)
watch = libc.inotify_init1(0)
print("watching", libc.inotify_add_watch(watch, b"@folder@", 0xFFF) >= 0)
""",
    node="",
    bash="",
)


class Target(NamedTuple):
    """Files of the user that the attacks run as, and what the attacks printed."""

    linked: Path
    changed: Path
    secret: str
    before: os.stat_result
    report: Report


@pytest.fixture(scope="module")
async def target(runner: SandboxRunner) -> AsyncIterator[Target]:
    secret = new_secret()
    with create_open_folder() as folder:
        linked, changed, link = folder / "linked", folder / "changed", folder / "link"
        link.symlink_to(linked)
        async with runner.as_one_user() as uid:
            for path, mode in ((linked, 0o666), (changed, 0o600)):
                path.write_text(secret)
                path.chmod(mode)
                if os.geteuid() == 0:
                    os.chown(path, uid, uid)
            before = changed.stat()
            attacks = {"links": _LINKS, "changes": _CHANGES, "watching": _WATCHING}
            report = await runner.run_attacks(
                attacks, folder=folder, linked=linked, link=link, changed=changed
            )
        yield Target(linked, changed, secret, before, report)


def test_links_give_no_access(target: Target, subtests: pytest.Subtests) -> None:
    for language, output in target.report.of("links"):
        with subtests.test(language=language):
            assert target.secret not in output
    assert target.linked.read_text() == target.secret
    assert target.linked.stat().st_nlink == 1


def test_a_file_of_the_same_user_cannot_be_changed(
    target: Target, subtests: pytest.Subtests
) -> None:
    """Neither the content nor the metadata, which Landlock lets the owner change."""
    for language, output in target.report.of("changes"):
        with subtests.test(language=language):
            assert " could" not in output
    after = target.changed.stat()
    assert target.changed.read_text() == target.secret
    assert (after.st_mode, after.st_mtime, after.st_ctime_ns) == (
        target.before.st_mode,
        target.before.st_mtime,
        target.before.st_ctime_ns,
    )


def test_no_file_is_added_to_a_folder_of_others(target: Target) -> None:
    assert list_names(target.changed.parent) == ["changed", "link", "linked"]


def test_file_names_of_others_cannot_be_watched(target: Target) -> None:
    ((_, output),) = target.report.of("watching")
    assert "watching False" in output
