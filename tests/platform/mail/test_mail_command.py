"""The command `mail`, which shows the mails in the folder."""

from pathlib import Path

import msgspec

from app.domain.platform.mail import api as mail
from tests.processes import run_parley
from tests.stores import Stores


async def test_a_mail_is_shown_as_text(stores: Stores, tmp_path: Path) -> None:
    settings = msgspec.structs.replace(stores.settings, data_dir=tmp_path)
    url = f"https://parley.test/register?token={'x' * 43}"
    content = mail.render("invitation", role="viewer", url=url, days=7)
    message = mail.compose("parley@localhost", "mal_1", "a@example.com", content, domain="x.test")
    await mail.send(settings, "mal_1", "a@example.com", message)
    result = run_parley(settings, "mail", "1")
    assert "a@example.com  You are invited to Parley" in result.stdout
    assert url in result.stdout.splitlines()
    assert "<p" not in result.stdout
