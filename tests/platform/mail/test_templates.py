"""The templates of all mails, as text and as HTML."""

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from jinja2 import FileSystemLoader, UndefinedError

from app.domain.identity.accounts.account_mails import AccountChange
from app.domain.platform.mail import rendering
from app.domain.platform.mail.rendering import MailContent, render

URL = "https://parley.test/page?token=abc&more=1"
FILE_URL = "https://parley.test/files/1"
APPROVE_URL = "https://parley.test/approval?decision=approved&token=abc"
REJECT_URL = "https://parley.test/approval?decision=rejected&token=abc"
HOSTILE = "<script>alert(\"1\")</script>' onclick='x' {{ 7 * 7 }} & <b>\"><img src=x>"
TEMPLATES = Path(rendering.__file__).with_name("templates")


class Item(msgspec.Struct):
    title: str
    message: str
    created_at: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Detail(msgspec.Struct):
    name: str
    value: str


class Choice(msgspec.Struct):
    label: str
    url: str


class Answer(msgspec.Struct):
    label: str
    text: str
    url: str | None = None


# Values of every template, by the name of the case; the template is its first word.
CASES: dict[str, dict[str, Any]] = {
    "verification": {"url": URL, "days": 7},
    "password_reset": {"url": URL},
    "invitation": {"role": "viewer", "url": URL, "days": 7},
    "account_notice": {"change": "password_changed", "url": URL},
    "notification": {"title": "New file", "message": "a\n\nb", "url": URL},
    "notification without a URL": {"title": "New file", "message": "text", "url": None},
    "digest": {
        "title": "9 new",
        "items": [Item("One", "a\nb"), Item("Two", "c")],
        "more": 7,
        "url": URL,
    },
    "form_submission": {
        "form_name": "Contact",
        "answers": [
            Answer("Your name", "Ada"),
            Answer("Message", "a\nb"),
            Answer("File", "plan.pdf", FILE_URL),
        ],
        "url": URL,
        "submission_id": "sbm_1",
        "created_at": datetime(2026, 3, 1, 12, tzinfo=UTC),
    },
    "form_recipient": {"asker": "ada@example.com", "url": URL, "days": 7},
    "form_recipient without an asker": {"asker": None, "url": URL, "days": 7},
    "form_digest": {"form_name": "Contact", "count": 12, "limit": 30, "url": URL},
    "form_digest of one": {"form_name": "Contact", "count": 1, "limit": 30, "url": URL},
    "approval": {
        "title": "Refund order 4711",
        "message": "The customer returned the lamp.",
        "workflow_name": "Refunds",
        "started_by": "the form Returns",
        "details": [Detail("Amount", "49.90"), Detail("Reason", "too bright\ntoo large")],
        "choices_to_make": [Choice("Approve", APPROVE_URL), Choice("Reject", REJECT_URL)],
        "deadline": datetime(2026, 3, 1, 12, tzinfo=UTC),
        "links_end_at": datetime(2026, 3, 1, 12, tzinfo=UTC),
    },
    "approval without an origin": {
        "title": "Refund order 4711",
        "message": "text",
        "workflow_name": None,
        "details": [],
        "choices_to_make": [Choice("Approve", APPROVE_URL), Choice("Reject", REJECT_URL)],
        "deadline": None,
        "links_end_at": datetime(2026, 3, 1, 12, tzinfo=UTC),
    },
    "digest without a URL": {"title": "1 new", "items": [Item("One", "a")], "more": 0, "url": None},
}
# Values that select the wording.
KEYS = {"change", "reason"}


def _render(case: str, values: dict[str, Any]) -> MailContent:
    return render(case.split(maxsplit=1)[0], **values)


class Page(HTMLParser):
    """The elements and the visible text of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.links: list[str | None] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.links += [value for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.text += data + " "


def test_every_template_has_a_case() -> None:
    names = {path.stem for path in TEMPLATES.glob("*.jinja")}
    assert names == {case.split()[0] for case in CASES}


def test_a_mail_says_the_same_as_text_and_as_html(subtests: pytest.Subtests) -> None:
    for case, values in CASES.items():
        with subtests.test(case=case):
            content = _render(case, values)
            words, html_words = content.text.split(), Page(content.html).text.split()
            missing = {word.rstrip(":") for word in words} - {
                word.rstrip(":") for word in html_words
            }
            assert missing <= {"-" * 40}
            assert content.text.startswith(f"{content.subject}\n\n")
            assert max(map(len, content.text.splitlines())) <= 76


def test_a_url_is_a_line_of_the_text_and_a_link_with_its_text(subtests: pytest.Subtests) -> None:
    for case, values in CASES.items():
        with subtests.test(case=case):
            content = _render(case, values)
            page = Page(content.html)
            has_url = values.get("url") == URL
            links = [*values.get("answers", []), *values.get("choices_to_make", [])]
            urls = [item.url for item in links if item.url]
            assert page.links == [*urls, *([URL] if has_url else [])]
            assert all(url in page.text and url in content.text.splitlines() for url in urls)
            assert (URL in page.text, URL in content.text.splitlines()) == (has_url, has_url)


def test_html_loads_nothing_and_has_inline_styles_alone(subtests: pytest.Subtests) -> None:
    for case, values in CASES.items():
        with subtests.test(case=case):
            html = _render(case, values).html
            tags = {tag for tag, _ in Page(html).elements}
            assert not tags & {
                "script",
                "style",
                "link",
                "img",
                "iframe",
                "object",
                "svg",
                "base",
                "form",
            }
            assert not re.search(r"url\(|@import|\bsrc=|http-equiv", html)


def test_a_missing_value_is_an_error(subtests: pytest.Subtests) -> None:
    for case, values in CASES.items():
        with subtests.test(case=case):
            unused = "webhook_id" if values.get("subscription_id") else None
            for name in values.keys() - {unused}:
                others = {key: value for key, value in values.items() if key != name}
                with pytest.raises(UndefinedError):
                    _render(case, others)


def _with_hostile_texts(value: Any) -> Any:
    match value:
        case str():
            return value + HOSTILE
        case Item():
            return Item(value.title + HOSTILE, value.message + HOSTILE)
        case Detail():
            return Detail(value.name + HOSTILE, value.value + HOSTILE)
        case Choice():
            return Choice(value.label + HOSTILE, value.url + HOSTILE)
        case Answer():
            url = value.url and value.url + HOSTILE
            return Answer(value.label + HOSTILE, value.text + HOSTILE, url)
        case list():
            return [_with_hostile_texts(item) for item in value]
    return value


def test_values_cannot_add_elements_or_attributes_to_html(subtests: pytest.Subtests) -> None:
    for case, values in CASES.items():
        with subtests.test(case=case):
            hostile = {
                name: value if name in KEYS else _with_hostile_texts(value)
                for name, value in values.items()
            }
            page, hostile_page = (Page(_render(case, item).html) for item in (values, hostile))
            assert hostile_page.elements == page.elements
            assert "<script" not in _render(case, hostile).html
            assert hostile_page.links == [link and link + HOSTILE for link in page.links]


def test_only_web_addresses_become_links(subtests: pytest.Subtests) -> None:
    for url in [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        " javascript:x",
        "data:text/html,x",
        "//x",
    ]:
        with subtests.test(url=url):
            content = render("notification", title="Title", message="text", url=url)
            page = Page(content.html)
            assert page.links == []
            assert url in page.text
            assert url in content.text


def test_lines_of_a_message_stay_lines(subtests: pytest.Subtests) -> None:
    for break_ in ["\n", "\r\n", "\r"]:
        with subtests.test(break_=break_):
            message = break_.join(["one", "  two", "", "", "three"])
            content = render("notification", title="Title", message=message, url=None)
            assert content.text == "Title\n\none\n  two\n\n\nthree\n"
            assert "one<br>  two<br><br><br>three" in content.html


def test_a_subject_is_one_line_of_at_most_200_characters(subtests: pytest.Subtests) -> None:
    for title, subject in [
        ("Hello\r\nBcc: eve@example.com", "Hello Bcc: eve@example.com"),
        ("a\x00b\x0bc\x1bd\x7fe\x85f\u2028g\u2029h", "ab c d e f g h"),
        ('  <b> & "quotes"  ', '<b> & "quotes"'),
        ("👨\u200d👩\u200d👧 Grüße", "👨\u200d👩\u200d👧 Grüße"),
        ("\ud800", "?"),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 199 + "…"),
    ]:
        with subtests.test(title=title, subject=subject):
            assert render("notification", title=title, message="text", url=None).subject == subject


def test_control_characters_of_a_message_are_not_sent() -> None:
    content = render("notification", title="Title", message="a\x1b[2Jb\tc\x00\x9bd", url=None)
    assert content.text == "Title\n\na [2Jb\tc d\n"
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", content.html)


def test_every_change_of_an_account_has_a_sentence(subtests: pytest.Subtests) -> None:
    for change in get_args(AccountChange):
        with subtests.test(change=change):
            content = render("account_notice", change=change, url=URL)
            assert re.search(r"Hello,\n\n[A-Z].+\.\n\nIf this was not you", content.text)


def test_a_time_is_shown_in_utc() -> None:
    item = Item("One", "a", datetime.fromisoformat("2026-03-01T01:30:00+02:00"))
    content = render("digest", title="New", items=[item], more=0, url=None)
    assert "2026-02-28 23:30 UTC" in content.text
    assert "2026-02-28 23:30 UTC" in content.html


def test_a_template_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = _render("digest", CASES["digest"])
    monkeypatch.delattr(FileSystemLoader, "get_source")
    assert _render("digest", CASES["digest"]) == first
