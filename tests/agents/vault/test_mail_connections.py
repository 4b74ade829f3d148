"""Connection tests of SMTP credentials."""

from pathlib import Path

import pytest

from tests.agents.vault.connections import check_connection
from tests.agents.vault.servers import MailServer, run_mail_server
from tests.certificates import create_server_context, write_certificate
from tests.ports import free_port
from tests.world import Client, World


async def test_the_right_password_logs_in_to_a_mail_server(
    admin: Client, mail_server: MailServer
) -> None:
    result = await check_connection(admin, "smtp", mail_server.secrets())
    assert (result["success"], result["message"]) == (True, "The mail server accepted the login")
    assert mail_server.logins == [b"shop"]


async def test_a_wrong_mail_password_fails_the_test(admin: Client, mail_server: MailServer) -> None:
    result = await check_connection(admin, "smtp", mail_server.secrets(password="wrong-password"))
    assert (result["success"], result["message"]) == (False, "the mail server answered 535")


async def test_a_mail_server_without_login_only_needs_to_answer(
    admin: Client, mail_server: MailServer
) -> None:
    secrets = {"host": "127.0.0.1", "port": mail_server.port, "use_tls": False}
    result = await check_connection(admin, "smtp", secrets)
    assert (result["success"], result["message"]) == (True, "The mail server answered")
    assert mail_server.logins == []


async def test_a_password_is_not_sent_to_a_mail_server_without_the_tls_it_should_have(
    admin: Client, mail_server: MailServer
) -> None:
    result = await check_connection(admin, "smtp", mail_server.secrets(use_tls=True))
    assert result["success"] is False
    assert mail_server.logins == []


async def test_a_mail_server_certificate_is_verified_by_its_name(
    world: World, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for name, success in (("localhost", True), ("mail.example.com", False)):
        admin = await world.user("tenant_admin")
        with subtests.test(name=name, success=success), pytest.MonkeyPatch.context() as monkeypatch:
            pem = write_certificate(tmp_path, name)
            monkeypatch.setenv("SSL_CERT_FILE", str(pem))
            tls = {
                "tls_context": create_server_context(pem),
                "require_starttls": True,
                "auth_require_tls": True,
            }
            async with run_mail_server(**tls) as mail_server:
                result = await check_connection(
                    admin, "smtp", mail_server.secrets(host="localhost", use_tls=True)
                )
            assert result["success"] is success, result
            assert bool(mail_server.logins) is success


async def test_a_mail_server_with_an_untrusted_certificate_gets_no_password(
    admin: Client, tmp_path: Path
) -> None:
    tls = {"tls_context": create_server_context(write_certificate(tmp_path, "localhost"))}
    async with run_mail_server(**tls) as mail_server:
        result = await check_connection(
            admin, "smtp", mail_server.secrets(host="localhost", use_tls=True)
        )
    assert result["success"] is False
    assert mail_server.logins == []


async def test_a_mail_login_may_contain_other_than_ascii(
    world: World, mail_server: MailServer, subtests: pytest.Subtests
) -> None:
    cases: list[dict[str, str]] = [{"username": "jürgen"}, {"password": "schlüssel-ü"}]
    for login in cases:
        admin = await world.user("tenant_admin")
        mail_server.logins.clear()
        with subtests.test(login=login):
            secrets = mail_server.secrets(**login)
            result = await check_connection(admin, "smtp", secrets)
            assert (result["success"], result["message"]) == (False, "the mail server answered 535")
            assert set(mail_server.logins) == {secrets["username"].encode()}


async def test_an_unreachable_mail_server_fails_the_test(admin: Client) -> None:
    secrets = {"host": "127.0.0.1", "port": free_port(), "use_tls": False}
    result = await check_connection(admin, "smtp", secrets)
    assert result["success"] is False
    assert result["message"].startswith("no session with the mail server")
