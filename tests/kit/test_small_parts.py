"""Ids, clock, trace, files, logs and mail: each small, each used everywhere."""

import asyncio
import contextvars
import email
import email.policy
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import aiosmtplib
import msgspec
import pytest
import structlog
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from app.domain.mail import service as mail
from app.kit import clock, ids, logs, texts, trace
from app.kit.files import FileNotStored, Files, StoredFile
from app.settings import Settings
from tests.ports import free_port

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

# Ids


def test_an_id_is_its_prefix_and_26_characters() -> None:
    prefix, _, rest = ids.new_id("usr").partition("_")
    assert (prefix, len(rest)) == ("usr", 26)


def test_an_id_has_only_characters_that_are_hard_to_confuse() -> None:
    used = set("".join(ids.new_id("x")[2:] for _ in range(1_000)))
    assert used <= set("0123456789abcdefghjkmnpqrstvwxyz")


def test_ids_sort_in_the_order_in_which_they_were_made() -> None:
    made = [ids.new_id("x") for _ in range(100_000)]
    assert made == sorted(made)


def test_no_two_of_many_ids_are_the_same() -> None:
    assert len({ids.new_id("x") for _ in range(100_000)}) == 100_000


def test_no_two_ids_of_several_threads_are_the_same() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: [ids.new_id("x") for _ in range(5_000)], range(8)))
    assert len({one for several in made for one in several}) == 40_000


def test_a_forked_process_makes_other_ids() -> None:
    code = (
        "import os; from app.kit import ids; ids.new_id('x'); child = os.fork();"
        "os.write(1, (ids.new_id('x')[-12:] + '\\n').encode()); child and os.wait()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert len(set(done.stdout.split())) == 2


def test_a_uuid_says_its_version_and_variant() -> None:
    number = ids.uuid7()
    assert (number >> 76 & 0xF, number >> 62 & 0b11) == (7, 0b10)


def test_a_uuid_starts_with_the_time() -> None:
    before = clock.epoch()
    millis = ids.uuid7() >> 80
    # The counter below the milliseconds may have run a little ahead of the clock.
    assert before * 1000 - 1 <= millis <= clock.epoch() * 1000 + 1_000


# Clock


def test_the_clock_knows_its_zone() -> None:
    assert clock.now().tzinfo is UTC


def test_a_frozen_clock_stands_still() -> None:
    with clock.frozen(NOON):
        assert (clock.now(), clock.epoch()) == (NOON, NOON.timestamp())


def test_the_inner_of_two_frozen_clocks_counts() -> None:
    with clock.frozen(NOON), clock.frozen(NOON + timedelta(days=1)):
        assert clock.now() == NOON + timedelta(days=1)


def test_the_outer_frozen_clock_counts_again_afterwards() -> None:
    with clock.frozen(NOON):
        with clock.frozen(NOON + timedelta(days=1)):
            pass
        assert clock.now() == NOON


def test_the_clock_goes_on_after_an_error() -> None:
    with pytest.raises(LookupError), clock.frozen(NOON):
        raise LookupError
    assert clock.now() != NOON


# Trace


@pytest.mark.parametrize(
    "given", ["a", "req-1", "order:42", "A.b_c+d=", "x" * 128, "0123456789abcdef"]
)
def test_a_plain_id_of_the_caller_is_kept(given: str) -> None:
    assert trace.safe_id(given, "req") == given


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "x" * 129,
        "a b",
        "a\tb",
        "a\n",
        "a\r\nb",
        "\n",
        "a\0",
        "a;b",
        "a/b",
        "<b>",
        '"',
        "\u00e9",
    ],
)
def test_an_id_that_is_not_plain_is_replaced(given: str | None) -> None:
    made = trace.safe_id(given, "req")
    assert made.startswith("req_")
    assert len(made) == 30


def test_outside_of_requests_and_jobs_one_new_trace_is_kept() -> None:
    def twice() -> tuple[trace.Trace, trace.Trace]:
        return trace.current(), trace.current()

    first, second = contextvars.Context().run(twice)
    assert first is second


def test_nothing_is_known_before_a_trace_begins() -> None:
    assert contextvars.Context().run(trace.current_or_none) is None


# Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files.at("", tmp_path)


async def test_a_stored_file_is_read_as_it_was(files: Files) -> None:
    await files.put("fil_1", b"content")
    assert await files.read("fil_1") == b"content"


async def test_storing_tells_size_and_hash(files: Files) -> None:
    sha256 = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
    assert await files.put("fil_1", b"content") == StoredFile("fil_1", 7, sha256)


async def test_a_file_may_be_empty(files: Files) -> None:
    await files.put("fil_1", b"")
    assert await files.read("fil_1") == b""


async def test_a_file_may_be_replaced(files: Files) -> None:
    await files.put("fil_1", b"first")
    await files.put("fil_1", b"second")
    assert await files.read("fil_1") == b"second"


async def test_a_key_may_have_folders(files: Files, tmp_path: Path) -> None:
    await files.put("ten_1/fil_1", b"content")
    assert (tmp_path / "files" / "ten_1" / "fil_1").read_bytes() == b"content"


async def test_files_outlast_the_process_that_stored_them(files: Files, tmp_path: Path) -> None:
    await files.put("fil_1", b"content")
    assert await Files.at("", tmp_path).read("fil_1") == b"content"


async def test_files_can_be_elsewhere_by_address(tmp_path: Path) -> None:
    await Files.at(tmp_path.as_uri(), tmp_path / "unused").put("fil_1", b"content")
    assert (tmp_path / "fil_1").read_bytes() == b"content"


@pytest.mark.parametrize(
    ("start", "end", "part"),
    [(0, 3, b"012"), (3, 7, b"3456"), (9, 10, b"9"), (5, 100, b"56789")],
)
async def test_a_range_of_a_file_is_read(files: Files, start: int, end: int, part: bytes) -> None:
    await files.put("fil_1", b"0123456789")
    assert await files.read_range("fil_1", start, end) == part


async def test_a_streamed_file_is_whole(files: Files) -> None:
    content = os.urandom(1_000_000)
    await files.put("fil_1", content)
    assert b"".join([chunk async for chunk in files.stream("fil_1")]) == content


async def test_a_large_file_is_streamed_in_parts(files: Files) -> None:
    await files.put("fil_1", bytes(10_000_000))
    assert len([chunk async for chunk in files.stream("fil_1")]) > 1


async def test_a_deleted_file_is_gone(files: Files) -> None:
    await files.put("fil_1", b"content")
    await files.delete("fil_1")
    with pytest.raises(FileNotStored):
        await files.read("fil_1")


async def test_deleting_what_is_not_there_is_done_already(files: Files) -> None:
    await files.delete("fil_1")


async def test_reading_what_is_not_there_is_told(files: Files) -> None:
    with pytest.raises(FileNotStored):
        await files.read("fil_1")


async def test_reading_a_range_of_what_is_not_there_is_told(files: Files) -> None:
    with pytest.raises(FileNotStored):
        await files.read_range("fil_1", 0, 1)


async def test_streaming_what_is_not_there_is_told(files: Files) -> None:
    with pytest.raises(FileNotStored):
        await anext(files.stream("fil_1"))


async def test_no_key_leads_out_of_the_folder(files: Files, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.\."):
        await files.put("../evil", b"content")
    assert not (tmp_path / "evil").exists()


# Logs


@contextmanager
def _logging(log_format: str, level: str = "info") -> Iterator[None]:
    """Logs to the standard error of this test, and back to what was before."""
    before, root = structlog.get_config(), logging.getLogger()
    handlers, threshold = root.handlers, root.level
    logs.configure(level, log_format)
    try:
        yield
    finally:
        structlog.configure(**before)
        root.handlers = handlers
        root.setLevel(threshold)


def _json_line(capsys: pytest.CaptureFixture[str], say: Callable[[], object]) -> dict[str, Any]:
    """The one line that this logged."""
    with _logging("json"):
        say()
    (line,) = capsys.readouterr().err.splitlines()
    decoded: dict[str, Any] = msgspec.json.decode(line)
    return decoded


def test_a_json_line_tells_event_level_part_and_time(capsys: pytest.CaptureFixture[str]) -> None:
    line = _json_line(capsys, lambda: logs.get("mail").warning("sent", count=3))
    assert datetime.fromisoformat(line.pop("timestamp")).tzinfo is not None
    line.pop("correlation_id", None)
    line.pop("request_id", None)
    assert line == {"event": "sent", "level": "warning", "part": "mail", "count": 3}


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "new_password",
        "PASSWORD",
        "passwd",
        "token",
        "refresh_token",
        "api_key",
        "apikey",
        "x_api_key",
        "client_secret",
        "authorization",
        "cookie",
        "set_cookie",
        "credential",
        "private_key",
    ],
)
def test_the_value_of_a_key_that_names_a_secret_is_blanked(
    capsys: pytest.CaptureFixture[str], key: str
) -> None:
    line = _json_line(capsys, lambda: logs.get("test").info("event", **{key: "hunter2"}))
    assert line[key] == "********"


def test_a_secret_inside_of_a_value_is_blanked(capsys: pytest.CaptureFixture[str]) -> None:
    inner = {"headers": [{"authorization": "hunter2"}], "password": "hunter2"}
    line = _json_line(capsys, lambda: logs.get("test").info("event", request=inner))
    assert "hunter2" not in str(line)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GET /a?api_key=hunter2", "GET /a?api_key=********"),
        ("GET /a?x=1&api_key=hunter2&y=2", "GET /a?x=1&api_key=********&y=2"),
        ("GET /a?API_KEY=hunter2 200", "GET /a?API_KEY=******** 200"),
        ("https://a.test/reset?token=hunter2", "https://a.test/reset?token=********"),
        ("'/a?access_token=hunter2'", "'/a?access_token=********'"),
    ],
)
def test_a_secret_in_a_query_is_blanked(
    capsys: pytest.CaptureFixture[str], text: str, shown: str
) -> None:
    line = _json_line(capsys, lambda: logs.get("test").info(text, path=text))
    assert (line["event"], line["path"]) == (shown, shown)


def test_a_secret_in_a_line_of_a_library_is_blanked(capsys: pytest.CaptureFixture[str]) -> None:
    line = _json_line(
        capsys, lambda: logging.getLogger("library").warning("GET %s", "/a?api_key=hunter2")
    )
    assert line["event"] == "GET /a?api_key=********"


def _fail(message: str) -> None:
    secret = "local-" + "hunter2"
    raise LookupError(message, len(secret))


def _log_failure(logger: Any, message: str) -> None:
    try:
        _fail(message)
    except LookupError:
        logger.exception("failed")


def test_a_json_line_holds_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    line = _json_line(capsys, lambda: _log_failure(logs.get("test"), "no such thing"))
    assert "no such thing" in line["exception"]
    assert "in _fail" in line["exception"]


@pytest.mark.parametrize("log_format", ["json", "console"])
@pytest.mark.parametrize("get", [logs.get, logging.getLogger])
def test_a_secret_in_the_text_of_an_error_is_blanked(
    capsys: pytest.CaptureFixture[str], log_format: str, get: Callable[[str], Any]
) -> None:
    with _logging(log_format):
        _log_failure(get("test"), "GET /a?api_key=" + "hunter2".upper())
    assert "HUNTER2" not in capsys.readouterr().err


@pytest.mark.parametrize("log_format", ["json", "console"])
@pytest.mark.parametrize("get", [logs.get, logging.getLogger])
def test_a_traceback_shows_no_local_variables(
    capsys: pytest.CaptureFixture[str], log_format: str, get: Callable[[str], Any]
) -> None:
    with _logging(log_format):
        _log_failure(get("test"), "no such thing")
    shown = capsys.readouterr().err
    assert "no such thing" in shown
    assert "local-hunter2" not in shown


def test_a_console_line_blanks_secrets_too(capsys: pytest.CaptureFixture[str]) -> None:
    with _logging("console"):
        logs.get("test").info("GET /a?token=hunter2", password="hunter2")
    shown = capsys.readouterr().err
    assert "GET /a?token=********" in shown
    assert "hunter2" not in shown


def _traced(say: Callable[[], object]) -> Callable[[], object]:
    def run() -> object:
        trace.begin(trace.Trace(correlation_id="cor_1", request_id="req_1"))
        return say()

    return lambda: contextvars.Context().run(run)


@pytest.mark.parametrize("get", [logs.get, logging.getLogger])
def test_a_line_tells_what_it_belongs_to(
    capsys: pytest.CaptureFixture[str], get: Callable[[str], Any]
) -> None:
    line = _json_line(capsys, _traced(lambda: get("test").warning("event")))
    assert (line["correlation_id"], line["request_id"]) == ("cor_1", "req_1")


def test_a_correlation_id_of_the_line_itself_counts(capsys: pytest.CaptureFixture[str]) -> None:
    line = _json_line(capsys, _traced(lambda: logs.get("test").info("a", correlation_id="cor_2")))
    assert line["correlation_id"] == "cor_2"


def test_a_line_outside_of_any_trace_has_no_ids(capsys: pytest.CaptureFixture[str]) -> None:
    line = _json_line(
        capsys, lambda: contextvars.Context().run(lambda: logs.get("test").info("event"))
    )
    assert not {"correlation_id", "request_id"} & set(line)


def test_a_line_break_in_a_value_does_not_make_a_second_json_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = _json_line(capsys, lambda: logs.get("test").info('a\n{"event": "forged"}'))
    assert line["event"] == 'a\\n{"event": "forged"}'


def test_a_value_that_json_does_not_know_is_shown_as_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = _json_line(capsys, lambda: logs.get("test").info("event", error=LookupError("why")))
    assert line["error"] == "why"


@pytest.mark.parametrize("get", [logs.get, logging.getLogger])
def test_a_line_below_the_level_is_not_written(
    capsys: pytest.CaptureFixture[str], get: Callable[[str], Any]
) -> None:
    with _logging("json", "error"):
        get("test").warning("event")
    assert capsys.readouterr().err == ""


# Mail


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        data_dir=tmp_path / "data", base_url="https://parley.test", mail_from="hello@parley.test"
    )


def _composed(settings: Settings, subject: str = "Hello", text: str = "text\n") -> EmailMessage:
    composed = mail.compose(settings, "mal_1", "ann@example.com", subject, text)
    return email.message_from_bytes(composed, policy=email.policy.default)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("From", "hello@parley.test"),
        ("To", "ann@example.com"),
        ("Subject", "Gr\u00fc\u00dfe \u2713"),
        ("Date", "Sun, 01 Mar 2026 12:00:00 +0000"),
        ("Message-ID", "<mal_1@parley.test>"),
    ],
)
def test_a_composed_mail_has_its_headers(settings: Settings, header: str, value: str) -> None:
    with clock.frozen(NOON):
        assert str(_composed(settings, "Gr\u00fc\u00dfe \u2713")[header]) == value


@pytest.mark.parametrize("text", ["plain\n", "Gr\u00fc\u00dfe \u2713\n", "x" * 2_000 + "\n"])
def test_a_composed_mail_has_its_text(settings: Settings, text: str) -> None:
    assert _composed(settings, text=text).get_content() == text


@pytest.mark.parametrize("subject", ["Hello\nBcc: eve@example.com", "Hello\r\nBcc: a@b.c", "a\rb"])
def test_a_subject_cannot_add_a_header(settings: Settings, subject: str) -> None:
    with pytest.raises(ValueError, match="linefeed or carriage return"):
        _composed(settings, subject)


@pytest.mark.parametrize(
    "recipient", ["ann@example.com\r\nBcc: eve@example.com", "ann@example.com, eve@example.com"]
)
def test_a_recipient_cannot_add_another(settings: Settings, recipient: str) -> None:
    with pytest.raises(ValueError, match=r"CR or LF|only 'ann@example\.com'"):
        mail.compose(settings, "mal_1", recipient, "Hello", "text")


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_without_smtp_a_mail_is_a_file_in_the_folder(settings: Settings) -> None:
    await mail.deliver(settings, "mal_1", "ann@example.com", b"message")
    assert (mail.mailbox(settings) / "mal_1.eml").read_bytes() == b"message"


async def test_a_mail_delivered_twice_is_in_the_folder_once(settings: Settings) -> None:
    for _ in range(2):
        await mail.deliver(settings, "mal_1", "ann@example.com", b"message")
    assert _names(mail.mailbox(settings)) == ["mal_1.eml"]


async def test_the_mail_folder_is_for_its_owner_alone(settings: Settings) -> None:
    await mail.deliver(settings, "mal_1", "ann@example.com", b"message")
    assert mail.mailbox(settings).stat().st_mode & 0o777 == 0o700


class Received(msgspec.Struct, frozen=True):
    sender: str
    recipients: list[str]
    content: bytes


class Inbox:
    """A real SMTP server's memory: what it took, and whom it turned away."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.received: list[Received] = []
        self.logins: list[tuple[bytes, bytes]] = []

    async def handle_RCPT(  # noqa: N802  # aiosmtpd calls it so
        self, _server: object, _session: object, envelope: Any, address: str, _options: object
    ) -> str:
        if address.startswith("nobody@"):
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802  # aiosmtpd calls it so
        self, _server: object, _session: object, envelope: Any
    ) -> str:
        self.received.append(Received(envelope.mail_from, envelope.rcpt_tos, envelope.content))
        return "250 OK"

    def check(self, *args: Any) -> AuthResult:
        login: LoginPassword = args[-1]
        self.logins.append((login.login, login.password))
        return AuthResult(success=True)

    def settings(self, settings: Settings, login: str = "") -> Settings:
        url = f"smtp://{login}127.0.0.1:{self.port}"
        return msgspec.structs.replace(settings, smtp_url=url)


@asynccontextmanager
async def _smtp(**options: Any) -> AsyncIterator[Inbox]:
    inbox = Inbox(free_port())
    controller = Controller(
        inbox, "127.0.0.1", inbox.port, authenticator=inbox.check, auth_require_tls=False, **options
    )
    await asyncio.to_thread(controller.start)
    try:
        yield inbox
    finally:
        await asyncio.to_thread(controller.stop)


@pytest.fixture
async def inbox() -> AsyncIterator[Inbox]:
    async with _smtp() as serving:
        yield serving


async def test_with_smtp_a_mail_goes_to_the_server(settings: Settings, inbox: Inbox) -> None:
    message = mail.compose(settings, "mal_1", "ann@example.com", "Hello", "Gr\u00fc\u00dfe\n")
    await mail.deliver(inbox.settings(settings), "mal_1", "ann@example.com", message)
    (received,) = inbox.received
    assert received.content.replace(b"\r\n", b"\n") == message


async def test_the_envelope_names_sender_and_recipient(settings: Settings, inbox: Inbox) -> None:
    message = mail.compose(settings, "mal_1", "ann@example.com", "Hello", "text")
    await mail.deliver(inbox.settings(settings), "mal_1", "ann@example.com", message)
    (received,) = inbox.received
    assert (received.sender, received.recipients) == ("hello@parley.test", ["ann@example.com"])


async def test_a_sender_may_have_a_display_name(settings: Settings, inbox: Inbox) -> None:
    named = msgspec.structs.replace(settings, mail_from="Parley <hello@parley.test>")
    message = mail.compose(named, "mal_1", "ann@example.com", "Hello", "text")
    await mail.deliver(inbox.settings(named), "mal_1", "ann@example.com", message)
    assert inbox.received[0].sender == "hello@parley.test"


async def test_a_line_of_one_dot_does_not_end_the_mail(settings: Settings, inbox: Inbox) -> None:
    message = mail.compose(settings, "mal_1", "ann@example.com", "Hello", "a\n.\n..b\n")
    await mail.deliver(inbox.settings(settings), "mal_1", "ann@example.com", message)
    received = email.message_from_bytes(inbox.received[0].content, policy=email.policy.default)
    assert received.get_content().replace("\r\n", "\n") == "a\n.\n..b\n"


async def test_with_smtp_nothing_is_left_in_the_folder(settings: Settings, inbox: Inbox) -> None:
    await mail.deliver(inbox.settings(settings), "mal_1", "ann@example.com", b"A: b\n\ntext\n")
    assert not mail.mailbox(settings).exists()


async def test_a_recipient_that_the_server_refuses_is_an_error(
    settings: Settings, inbox: Inbox
) -> None:
    with pytest.raises(aiosmtplib.SMTPRecipientsRefused):
        await mail.deliver(inbox.settings(settings), "mal_1", "nobody@example.com", b"A: b\n\n")


async def test_a_server_that_is_not_there_is_an_error(settings: Settings) -> None:
    absent = Inbox(free_port()).settings(settings)
    with pytest.raises(aiosmtplib.SMTPConnectError):
        await mail.deliver(absent, "mal_1", "ann@example.com", b"A: b\n\n")


async def test_name_and_password_of_the_url_are_decoded(settings: Settings, inbox: Inbox) -> None:
    login = "ann%40parley.test:p%40ss%2Fword@"
    message = mail.compose(settings, "mal_1", "ann@example.com", "Hello", "text")
    await mail.deliver(inbox.settings(settings, login), "mal_1", "ann@example.com", message)
    assert inbox.logins == [(b"ann@parley.test", b"p@ss/word")]


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_control_characters_never_reach_the_log(
    capsys: pytest.CaptureFixture[str], log_format: str
) -> None:
    logs.configure("info", log_format)
    logs.get("test").info("request", path="/a\x1b[2J\nforged\x07")
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert "\x1b[2J" not in printed
    assert "\x07" not in printed


def test_a_mail_to_a_name_beyond_ascii_goes_to_its_encoded_form(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    message = mail.compose(settings, "mal_1", "a@bücher.example", "Hello", "text")
    assert b"To: a@xn--bcher-kva.example" in message


def test_a_settled_process_looks_for_garbage_rarely_but_still_finds_it() -> None:
    script = """
import gc, weakref
from app.kit import memory
class Knot:
    pass
memory.tune_gc()
assert gc.get_freeze_count() > 1000
gone = []
for _ in range(3 * gc.get_threshold()[0]):
    knot = Knot()
    knot.itself = knot
    if not gone:
        gone.append(weakref.ref(knot))
assert gone[0]() is None
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_what_is_stored_holds_no_halves_of_characters() -> None:
    assert texts.storable("a\0b \ud83d c \u00fc") == "ab ? c \u00fc"
