"""Composing mails, and sending them to a folder or an SMTP server."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from app.domain.platform.mail import service as mail
from app.domain.platform.mail.rendering import MailContent, render
from app.kit import clock
from app.net.smtp import SessionRefused, SmtpFailed
from app.settings import Settings
from tests.certificates import create_server_context, write_certificate
from tests.platform.mail.inbox import WRONG_PASSWORD, Inbox, run_smtp_server
from tests.platform.mail.messages import parse, read_part
from tests.ports import free_port

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SENDER, RECIPIENT = "hello@parley.test", "ann@example.com"
CONTENT = MailContent("Hello", "text\n", "<p>text</p>\n")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", base_url="https://parley.test", mail_from=SENDER)


def _compose(
    subject: str = "Hello", text: str = "text\n", html: str = "<p>text</p>\n", to: str = RECIPIENT
) -> bytes:
    content = MailContent(subject, text, html)
    return mail.compose(SENDER, "mal_1", to, content, domain="parley.test")


def test_a_composed_mail_has_its_headers(subtests: pytest.Subtests) -> None:
    for header, value in [
        ("From", SENDER),
        ("To", RECIPIENT),
        ("Subject", "Grüße ✓"),
        ("Date", "Sun, 01 Mar 2026 12:00:00 +0000"),
        ("Message-ID", "<mal_1@parley.test>"),
        ("Auto-Submitted", "auto-generated"),
    ]:
        with subtests.test(header=header, value=value), clock.frozen(NOON):
            assert str(parse(_compose("Grüße ✓"))[header]) == value


def test_a_composed_mail_has_its_text_and_its_html(subtests: pytest.Subtests) -> None:
    for text in ["plain\n", "Grüße ✓\n", "x" * 2_000 + "\n"]:
        with subtests.test(text=text):
            message = _compose(text=text, html=f"<p>{text}</p>\n")
            assert read_part(message) == text
            assert read_part(message, "html") == f"<p>{text}</p>\n"


def test_the_html_is_the_last_and_so_the_preferred_alternative() -> None:
    message = parse(_compose())
    assert message.get_content_type() == "multipart/alternative"
    types = [part.get_content_type() for part in message.iter_parts()]
    assert types == ["text/plain", "text/html"]


def test_a_mail_without_html_is_plain_text() -> None:
    message = parse(_compose(html=""))
    assert (message.get_content_type(), message.get_content()) == ("text/plain", "text\n")


def test_a_subject_cannot_add_a_header(subtests: pytest.Subtests) -> None:
    for subject in ["Hello\nBcc: eve@example.com", "Hello\r\nBcc: a@b.c", "a\rb"]:
        with (
            subtests.test(subject=subject),
            pytest.raises(ValueError, match="linefeed or carriage return"),
        ):
            _compose(subject)


# Encoded words (RFC 2047) that decode to a line break and another header.
_ENCODED_BREAKS = [
    "=?utf-8?q?Hi=0D=0ABcc:_eve=40example.com=0D=0A=0D=0Abody?=",
    "=?utf-8?b?SGkNCkJjYzogZXZlQGV4YW1wbGUuY29t?=",
    "before =?iso-8859-1?Q?=0A?= after",
]


def test_an_encoded_subject_cannot_add_a_header(subtests: pytest.Subtests) -> None:
    for subject in _ENCODED_BREAKS:
        with subtests.test(subject=subject), pytest.raises(ValueError, match="control character"):
            _compose(subject)


def test_a_rendered_subject_has_no_encoded_words(subtests: pytest.Subtests) -> None:
    for title in _ENCODED_BREAKS:
        with subtests.test(title=title):
            content = render("notification", title=title, message="text", url=None)
            message = parse(_compose(content.subject))
            assert "\n" not in str(message["Subject"])
            assert message["Bcc"] is None
            assert "=?" not in str(message["Subject"])


def test_a_recipient_cannot_add_another(subtests: pytest.Subtests) -> None:
    for recipient in [
        "ann@example.com\r\nBcc: eve@example.com",
        "ann@example.com, eve@example.com",
    ]:
        with (
            subtests.test(recipient=recipient),
            pytest.raises(ValueError, match=r"CR or LF|only 'ann@example\.com'"),
        ):
            _compose(to=recipient)


def test_a_sender_cannot_add_a_header() -> None:
    sender = "Ann <ann@example.com>\nBcc: eve@example.com"
    with pytest.raises(ValueError, match="linefeed or carriage return"):
        mail.compose(sender, "mal_1", RECIPIENT, CONTENT, domain="parley.test")


def test_a_mail_to_an_international_domain_goes_to_its_encoded_form() -> None:
    assert b"To: a@xn--bcher-kva.example" in _compose(to="a@bücher.example")


def test_the_domain_of_message_ids_is_that_of_the_public_url(settings: Settings) -> None:
    assert mail.domain_of(settings) == "parley.test"


# Without a mail server


def _list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_without_smtp_a_mail_is_a_file_in_the_folder(settings: Settings) -> None:
    await mail.send(settings, "mal_1", RECIPIENT, b"message")
    assert (mail.mailbox(settings) / "mal_1.eml").read_bytes() == b"message"


async def test_a_mail_delivered_twice_is_in_the_folder_once(settings: Settings) -> None:
    for _ in range(2):
        await mail.send(settings, "mal_1", RECIPIENT, b"message")
    assert _list_names(mail.mailbox(settings)) == ["mal_1.eml"]


async def test_only_the_owner_has_access_to_the_mail_folder(settings: Settings) -> None:
    await mail.send(settings, "mal_1", RECIPIENT, b"message")
    assert mail.mailbox(settings).stat().st_mode & 0o777 == 0o700


# With a mail server


async def test_a_mail_goes_to_the_server_and_not_to_the_folder(
    settings: Settings, inbox: Inbox
) -> None:
    message = _compose(text="Grüße\n")
    await mail.send(inbox.configure(settings), "mal_1", RECIPIENT, message)
    (received,) = inbox.received
    assert received.content.replace(b"\r\n", b"\n") == message
    assert not mail.mailbox(settings).exists()


async def test_the_envelope_has_addresses_without_names(settings: Settings, inbox: Inbox) -> None:
    with_name = msgspec.structs.replace(settings, mail_from="Parley <hello@parley.test>")
    await mail.send(inbox.configure(with_name), "mal_1", RECIPIENT, _compose())
    (received,) = inbox.received
    assert (received.sender, received.recipients) == (SENDER, [RECIPIENT])


async def test_a_line_of_one_dot_does_not_end_the_mail(settings: Settings, inbox: Inbox) -> None:
    message = _compose(text="a\n.\n..b\n", html="<p>\n.\n</p>\n")
    await mail.send(inbox.configure(settings), "mal_1", RECIPIENT, message)
    content = inbox.received[0].content
    assert read_part(content) == "a\n.\n..b\n"
    assert read_part(content, "html") == "<p>\n.\n</p>\n"


async def test_the_login_in_the_url_is_decoded(settings: Settings, inbox: Inbox) -> None:
    with_login = inbox.configure(settings, "ann%40parley.test:p%40ss%2Fword@")
    await mail.send(with_login, "mal_1", RECIPIENT, _compose())
    assert inbox.logins == [(b"ann@parley.test", b"p@ss/word")]


async def _send_by_starttls(settings: Settings, pem: Path, options: str) -> Inbox:
    tls = {"tls_context": create_server_context(pem), "require_starttls": True}
    async with run_smtp_server(**tls, auth_require_tls=True) as inbox:
        with_login = inbox.configure(settings, "ann:right@", options, "localhost")
        await mail.send(with_login, "mal_1", RECIPIENT, _compose(text="Grüße\n"))
    return inbox


async def test_a_mail_of_both_formats_is_sent_by_starttls_and_login(
    settings: Settings, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for options in ("", "?starttls=1"):
        with subtests.test(options=options), pytest.MonkeyPatch.context() as monkeypatch:
            pem = write_certificate(tmp_path, "localhost")
            monkeypatch.setenv("SSL_CERT_FILE", str(pem))
            inbox = await _send_by_starttls(settings, pem, options)
            (received,) = inbox.received
            assert (received.has_tls, inbox.logins) == (True, [(b"ann", b"right")])
            assert read_part(received.content) == "Grüße\n"
            assert read_part(received.content, "html") == "<p>text</p>\n"


async def test_a_server_with_an_unknown_certificate_gets_no_login(
    settings: Settings, tmp_path: Path
) -> None:
    with pytest.raises(SmtpFailed, match="no session with the mail server"):
        await _send_by_starttls(settings, write_certificate(tmp_path, "localhost"), "")


async def test_a_server_without_starttls_gets_no_mail_where_it_is_required(
    settings: Settings, inbox: Inbox
) -> None:
    with pytest.raises(SmtpFailed):
        await mail.send(
            inbox.configure(settings, options="?starttls=1"), "mal_1", RECIPIENT, _compose()
        )
    assert inbox.received == []


async def test_a_refused_recipient_is_an_error_without_text_of_the_server(
    settings: Settings, inbox: Inbox, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, bool, int]] = [
        ("nobody@example.com", True, 550),
        ("later@example.com", False, 451),
    ]
    for recipient, is_permanent, code in cases:
        with subtests.test(recipient=recipient, is_permanent=is_permanent):
            with pytest.raises(SmtpFailed) as failure:
                await mail.send(inbox.configure(settings), "mal_1", recipient, _compose())
            assert failure.value.is_permanent is is_permanent
            assert str(failure.value) == f"the mail server answered {code}"
            assert not isinstance(failure.value, SessionRefused)


async def test_a_refused_login_is_told_from_a_refused_mail(
    settings: Settings, inbox: Inbox
) -> None:
    wrong = inbox.configure(settings, f"ann:{WRONG_PASSWORD}@")
    with pytest.raises(SessionRefused, match=r"^the mail server answered 535$"):
        await mail.send(wrong, "mal_1", RECIPIENT, _compose())


async def test_an_unreachable_server_is_an_error(settings: Settings) -> None:
    unreachable = Inbox(free_port()).configure(settings)
    with pytest.raises(SmtpFailed, match="SMTPConnectError") as failure:
        await mail.send(unreachable, "mal_1", RECIPIENT, _compose())
    assert not failure.value.is_permanent
