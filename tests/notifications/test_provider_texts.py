"""Texts of chat messages and SMS."""

import pytest

from app.domain.notifications.providers import slack, sms
from tests.notifications.notices import build_notice


@pytest.mark.parametrize(
    ("title", "text", "message"),
    [
        ("Done", "All rows", "*Done*\nAll rows"),
        ("", "All rows", "All rows"),
        ("Done", "", "*Done*"),
        ("a\nb", "c\nd", "*a b*\nc\nd"),
        ("<!channel>", "<@U1> & <https://evil.example|bank>",
         "*&lt;!channel&gt;*\n&lt;@U1&gt; &amp; &lt;https://evil.example|bank&gt;"),
        ("a &lt; b", "", "*a &amp;lt; b*"),
        ("2 * 3 * 4", "*bold*", "*2 \u2217 3 \u2217 4*\n*bold*"),
        ("~no~ `code`", "", "*\u223cno\u223c \u02cbcode\u02cb*"),
        ("workflow_failed", "", "*workflow_failed*"),
        ("_a_ __b__ c_", "", "*\u02cda\u02cd \u02cd\u02cdb\u02cd\u02cd c\u02cd*"),
    ],
)  # fmt: skip
def test_a_slack_text_has_a_bold_title_and_no_markup_of_mentions_and_links(
    title: str, text: str, message: str
) -> None:
    assert slack.build_text(build_notice(title=title, text=text)) == message


@pytest.mark.parametrize(
    ("title", "text", "message"),
    [
        ("Done", "All rows", "Done: All rows"),
        ("", "All rows", "All rows"),
        ("Done", "", "Done"),
        ("A", "b" * 1597, "A: " + "b" * 1597),
        ("A", "b" * 1598, "A: " + "b" * 1594 + "..."),
        ("A", "\U0001f600" * 800, "A: " + "\U0001f600" * 797 + "..."),
    ],
)
def test_an_sms_has_title_and_message_up_to_its_limit(title: str, text: str, message: str) -> None:
    built = sms.build_text(build_notice(title=title, text=text))
    assert built == message
    assert len(built.encode("utf-16-le")) <= 2 * sms.MAX_CHARS


@pytest.mark.parametrize("number", ["+14155550100", "447700900000"])
def test_a_phone_number_has_a_country_code(number: str) -> None:
    assert sms.find_problem([number]) is None


@pytest.mark.parametrize("number", ["", "0123456789", "+1", "+1415555010\n", "+1 415 555", "bob"])
def test_another_text_is_no_phone_number(number: str) -> None:
    problem = sms.find_problem(["+14155550100", number])
    assert problem is not None
    assert problem[0] == "to.1"
