"""Mails over SMTP, with a real server."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from app.domain.messaging.notifications import configs
from app.domain.messaging.notifications.providers import smtp
from app.domain.messaging.notifications.providers.protocol import SendFailed
from app.domain.messaging.notifications.providers.registry import PROVIDERS
from app.domain.messaging.outbox.egress import OutboxEgress
from app.net.egress import Guard
from tests.agents.vault.servers import ConnectionHandler, serve_tcp
from tests.certificates import create_server_context, write_certificate
from tests.messaging.notifications.mail_server import (
    PASSWORD,
    USERNAME,
    MailServer,
    run_mail_server,
)
from tests.messaging.notifications.notices import build_notice, fail, send
from tests.ports import free_port

_HOST = "mail.example.com"


async def _resolve_to_loopback(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


@pytest.fixture
async def mail_server() -> AsyncIterator[MailServer]:
    """A mail server without TLS."""
    async with run_mail_server() as server:
        yield server


@pytest.fixture
async def named() -> AsyncIterator[OutboxEgress]:
    """A client that may reach the mail server by its name."""
    egress = OutboxEgress(Guard((_HOST,), resolve=_resolve_to_loopback))
    yield egress
    await egress.close()


async def test_a_mail_has_text_and_html_and_the_sender_with_its_name(
    loopback: OutboxEgress, mail_server: MailServer
) -> None:
    await send(loopback, "smtp", mail_server.config(), title="Grüße\nan alle")
    envelope, message = mail_server.envelopes[0], mail_server.read()
    assert (envelope.mail_from, envelope.rcpt_tos) == ("ann@example.com", ["bob@example.com"])
    assert mail_server.logins == [USERNAME.encode()]
    headers = {name: str(message[name]) for name in ("From", "To", "Subject", "Message-ID")}
    assert headers == {
        "From": "Ann <ann@example.com>",
        "To": "bob@example.com",
        "Subject": "Grüße an alle",
        "Message-ID": "<ntd_0123456789@example.com>",
    }
    parts = {part.get_content_type(): part.get_content() for part in message.iter_parts()}
    assert parts["text/plain"].strip() == "Row 7 has no name."
    assert parts["text/html"].strip() == "<p>Row 7 has no name.</p>"


async def test_a_domain_outside_ascii_is_encoded(
    loopback: OutboxEgress, mail_server: MailServer
) -> None:
    config = mail_server.config(**{"from": "Ann <ann@bücher.example>"})
    await send(loopback, "smtp", config, recipient="bob@straße.example")
    envelope, message = mail_server.envelopes[0], mail_server.read()
    assert envelope.mail_from == "ann@xn--bcher-kva.example"
    assert envelope.rcpt_tos[0].startswith("bob@")
    assert envelope.rcpt_tos[0].isascii()
    assert str(message["Message-ID"]).endswith("@xn--bcher-kva.example>")
    assert str(message["From"]) == "Ann <ann@xn--bcher-kva.example>"


async def test_a_server_without_a_login_needs_none(
    loopback: OutboxEgress, mail_server: MailServer
) -> None:
    config = mail_server.config()
    del config["username"], config["password"]
    await send(loopback, "smtp", config)
    assert (len(mail_server.envelopes), mail_server.logins) == (1, [])


async def test_an_answer_of_the_server_says_whether_another_try_may_succeed(
    loopback: OutboxEgress, mail_server: MailServer, subtests: pytest.Subtests
) -> None:
    cases = [
        ("RCPT", "550 5.1.1 No such user", True),
        ("RCPT", "450 4.2.1 Mailbox busy", False),
        ("DATA", "451 4.3.0 Try again later", False),
        ("DATA", "554 5.7.1 Looks like spam", True),
    ]
    for command, answer, is_permanent in cases:
        with subtests.test(answer=answer):
            mail_server.answers = {command: answer}
            failure = await fail(loopback, "smtp", mail_server.config())
            code, _, text = answer.partition(" ")
            assert failure.message == f"the mail server answered {code}: {text}"
            assert (failure.is_permanent, failure.code) == (is_permanent, "provider_error")
    assert mail_server.envelopes == []


async def test_a_wrong_password_is_a_permanent_failure(
    loopback: OutboxEgress, mail_server: MailServer
) -> None:
    failure = await fail(loopback, "smtp", mail_server.config(password="wrong-password"))
    assert failure.message.startswith("the mail server answered 535: ")
    assert (failure.is_permanent, failure.code) == (True, "provider_error")
    assert mail_server.envelopes == []


async def test_starttls_verifies_the_certificate_by_the_name_of_the_host(
    named: OutboxEgress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for name, is_valid in ((_HOST, True), ("other.example.com", False)):
        pem = write_certificate(tmp_path, name)
        monkeypatch.setenv("SSL_CERT_FILE", str(pem))
        tls = {"tls_context": create_server_context(pem), "require_starttls": True}
        async with run_mail_server(**tls, auth_require_tls=True) as mail_server:
            config = mail_server.config(host=_HOST, use_tls=True)
            with subtests.test(name=name):
                if is_valid:
                    await send(named, "smtp", config)
                else:
                    failure = await fail(named, "smtp", config)
                    assert (failure.code, failure.is_permanent) == ("delivery_failed", False)
                assert bool(mail_server.envelopes) is is_valid
                assert bool(mail_server.logins) is is_valid


async def test_an_untrusted_certificate_gets_no_password(
    named: OutboxEgress, tmp_path: Path
) -> None:
    tls = {"tls_context": create_server_context(write_certificate(tmp_path, _HOST))}
    async with run_mail_server(**tls) as mail_server:
        await fail(named, "smtp", mail_server.config(host=_HOST, use_tls=True))
    assert (mail_server.logins, mail_server.envelopes) == ([], [])


async def test_a_server_without_starttls_gets_neither_password_nor_mail(
    loopback: OutboxEgress, mail_server: MailServer
) -> None:
    failure = await fail(loopback, "smtp", mail_server.config(use_tls=True))
    assert failure.code == "delivery_failed"
    assert (mail_server.logins, mail_server.envelopes) == ([], [])


async def test_a_server_that_cannot_be_reached_is_tried_again(loopback: OutboxEgress) -> None:
    config = {"host": "127.0.0.1", "port": free_port(), "use_tls": False, "from": "a@example.com"}
    failure = await fail(loopback, "smtp", config)
    assert failure.message.startswith("no session with the mail server")
    assert (failure.code, failure.is_permanent) == ("delivery_failed", False)


async def test_a_server_that_does_not_answer_is_tried_again(
    loopback: OutboxEgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp, "TIMEOUT_SECONDS", 0.2)
    wait: ConnectionHandler = lambda reader, _writer: reader.read()  # noqa: E731 - the type is needed
    async with serve_tcp(wait) as port:
        config = {"host": "127.0.0.1", "port": port, "use_tls": False, "from": "a@example.com"}
        failure = await fail(loopback, "smtp", config)
    assert (failure.code, failure.is_permanent) == ("delivery_failed", False)


async def test_a_private_address_gets_no_session(
    public_only: OutboxEgress, mail_server: MailServer, subtests: pytest.Subtests
) -> None:
    """Also where the operator has removed it from the allow list since it was saved."""
    provider = PROVIDERS["smtp"]
    for host in ("127.0.0.1", "2130706433", "0x7f.1", "::1", "10.0.0.1", "169.254.169.254"):
        with subtests.test(host=host):
            config = msgspec.convert(mail_server.config(host=host), provider.config)
            with pytest.raises(SendFailed) as failure:
                await provider.send(public_only, config, build_notice())
            message = failure.value.message
            assert message.startswith(f"no session: {host} is not a public address; ")
            assert (failure.value.code, failure.value.is_permanent) == ("delivery_failed", True)
    assert mail_server.logins == []


async def test_a_name_that_leads_to_a_private_address_gets_no_session(
    mail_server: MailServer,
) -> None:
    egress = OutboxEgress(Guard((), resolve=_resolve_to_loopback))
    failure = await fail(egress, "smtp", mail_server.config(host=_HOST))
    assert failure.message.startswith(f"no session: {_HOST} leads to a private address; ")
    assert failure.is_permanent
    assert mail_server.logins == []


async def test_a_password_that_a_server_repeats_is_removed_from_the_failure(
    loopback: OutboxEgress, mail_server: MailServer
) -> None:
    mail_server.answers = {"DATA": f"550 refused {PASSWORD}"}
    provider, values = PROVIDERS["smtp"], mail_server.config()
    config = configs.validate(provider, values, loopback.guard)
    failure = await fail(loopback, "smtp", values)
    text = configs.describe_failure(provider, config, failure)
    assert text == "the mail server answered 550: refused [redacted]"
