"""Texts of chat messages and SMS."""

import pytest

from app.domain.messaging.notifications.providers import slack, sms
from tests.messaging.notifications.notices import build_notice


def test_a_slack_text_has_a_bold_title_and_no_markup_of_mentions_and_links(
    subtests: pytest.Subtests,
) -> None:
    for title, text, message in [
        ("Done", "All rows", "*Done*\nAll rows"),
        ("", "All rows", "All rows"),
        ("Done", "", "*Done*"),
        ("a\nb", "c\nd", "*a b*\nc\nd"),
        (
            "<!channel>",
            "<@U1> & <https://evil.example|bank>",
            "*&lt;!channel&gt;*\n&lt;@U1&gt; &amp; &lt;https://evil.example|bank&gt;",
        ),
        ("a &lt; b", "", "*a &amp;lt; b*"),
        ("2 * 3 * 4", "*bold*", "*2 \u2217 3 \u2217 4*\n*bold*"),
        ("~no~ `code`", "", "*\u223cno\u223c \u02cbcode\u02cb*"),
        ("workflow_failed", "", "*workflow_failed*"),
        ("_a_ __b__ c_", "", "*\u02cda\u02cd \u02cd\u02cdb\u02cd\u02cd c\u02cd*"),
    ]:
        with subtests.test(title=title, text=text, message=message):
            assert slack.build_text(build_notice(title=title, text=text)) == message


def test_an_sms_has_title_and_message_up_to_its_limit(subtests: pytest.Subtests) -> None:
    for title, text, message in [
        ("Done", "All rows", "Done: All rows"),
        ("", "All rows", "All rows"),
        ("Done", "", "Done"),
        ("A", "b" * 1597, "A: " + "b" * 1597),
        ("A", "b" * 1598, "A: " + "b" * 1594 + "..."),
        ("A", "\U0001f600" * 800, "A: " + "\U0001f600" * 797 + "..."),
    ]:
        with subtests.test(title=title, text=text, message=message):
            built = sms.build_text(build_notice(title=title, text=text))
            assert built == message
            assert len(built.encode("utf-16-le")) <= 2 * sms.MAX_CHARS


def test_a_phone_number_has_a_country_code(subtests: pytest.Subtests) -> None:
    for number in ["+14155550100", "447700900000"]:
        with subtests.test(number=number):
            assert sms.find_problem([number]) is None


def test_another_text_is_no_phone_number(subtests: pytest.Subtests) -> None:
    for number in ["", "0123456789", "+1", "+1415555010\n", "+1 415 555", "bob"]:
        with subtests.test(number=number):
            problem = sms.find_problem(["+14155550100", number])
            assert problem is not None
            assert problem[0] == "to.1"
