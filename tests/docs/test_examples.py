"""The examples of the documentation work as they are written."""

import re
import subprocess
from pathlib import Path

import jwt
import pytest

from app.kit.node import NODE
from tests.docs import pages
from tests.docs.shell import run_commands
from tests.local.instance import Up
from tests.processes import ROOT

pytestmark = pytest.mark.timeout(300)

_SECRET = "an identity secret that is long enough"
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def test_the_first_conversation_of_the_readme_works(instance: Up, tmp_path: Path) -> None:
    output = run_commands(instance, pages.read_first_conversation(), tmp_path)
    assert output.count('"conversation_id"') >= 2
    assert "event: " in output
    assert '"completed"' in output


@pytest.mark.parametrize("page", pages.list_pages(), ids=lambda page: page.stem)
def test_the_commands_of_a_page_work(instance: Up, tmp_path: Path, page: Path) -> None:
    run_commands(instance, [*pages.read_sign_in(), *pages.read_commands(page)], tmp_path)


def test_an_openai_client_talks_to_an_agent_as_the_page_says(instance: Up, tmp_path: Path) -> None:
    page = pages.DOCS / "conversations.md"
    sign_in, commands = pages.read_sign_in(), pages.read_commands(page)
    output = run_commands(instance, [*sign_in, commands[0], 'echo "$token $agent"'], tmp_path)
    token, agent = output.split()[-2:]
    [program] = [block for block in pages.read_blocks(page, "python") if "openai" in block]
    program = program.replace("http://127.0.0.1:8000", instance.url)
    exec(program, {"token": token, "agent": agent})  # the documentation is ours


def test_servers_sign_user_tokens_as_the_page_says(tmp_path: Path) -> None:
    page = pages.DOCS / "conversations.md"
    [program] = [block for block in pages.read_blocks(page, "python") if "jwt" in block]
    names = {"identity_secret": _SECRET}
    exec(program, names)  # the documentation is ours
    [script] = pages.read_blocks(page, "js")
    module = tmp_path / "sign.mjs"
    secret = f'const identitySecret = "{_SECRET}";'
    module.write_text(f"{secret}\n{script}\nconsole.log(userToken);")
    printed = subprocess.run([NODE, module], capture_output=True, text=True, check=True)
    for user_token in (names["user_token"], printed.stdout.strip()):
        claims = jwt.decode(user_token, _SECRET, algorithms=["HS256"])
        assert (claims["sub"], claims["name"]) == ("customer-7", "Ada")


def test_links_between_pages_lead_somewhere(subtests: pytest.Subtests) -> None:
    for page in (pages.README, ROOT / "CONTRIBUTING.md", *pages.DOCS.rglob("*.md")):
        with subtests.test(page.name):
            for link in _LINK.findall(page.read_text(encoding="utf-8")):
                if link.startswith("http"):
                    continue
                path, _, anchor = link.partition("#")
                target = (page.parent / path).resolve() if path else page
                assert target.exists(), link
                if anchor:
                    headings = _HEADING.findall(target.read_text(encoding="utf-8"))
                    assert anchor in {_anchor_of(heading) for heading in headings}, link


def _anchor_of(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")


def test_the_readme_is_short() -> None:
    assert len(pages.README.read_text(encoding="utf-8").splitlines()) <= 150


def test_every_setting_is_documented() -> None:
    from app.settings import Settings  # noqa: PLC0415  # only for this test

    text = (pages.DOCS / "configuration.md").read_text(encoding="utf-8")
    hidden = {"metrics_dir", "set_names"}
    names = [name for name in Settings.__struct_fields__ if name not in hidden]
    assert [name for name in names if f"`PARLEY_{name.upper()}`" not in text] == []
