"""Mails about pending decisions, where the tenant has a mail channel."""

import pytest

from app.domain.automation.approvals import link_tokens
from tests.automation.approvals.factories import request
from tests.messaging.notifications.center.post_office import PostOffice, text_of
from tests.messaging.notifications.factories import update_channel


def _find_token(text: str) -> str:
    return text.partition("decision=approved&token=")[2].split()[0]


async def test_without_a_mail_server_a_channel_tells_of_the_question_without_links(
    office: PostOffice,
) -> None:
    """Whoever may change channels could read the links, and decide for others."""
    await office.create_channel("sendgrid")
    await office.user("agent_user")
    await request(office.services, office.tenant_id)
    await office.wait_until_idle()
    (mail,) = office.channel_mails()
    assert "Refund order 4711" in str(mail)
    assert "token" not in str(mail)


@pytest.mark.usefixtures("slow_retries")
async def test_the_own_mail_server_sends_the_links_when_the_channel_is_switched_off(
    office: PostOffice,
) -> None:
    office.providers.answer(500)
    channel_id = await office.create_channel("sendgrid")
    user = await office.user("agent_user")
    await request(office.services, office.tenant_id)
    await office.wait_until_idle()
    await update_channel(office.admin, channel_id, active=False)
    await office.release()
    (mail,) = await office.own_mails(user)
    token = _find_token(text_of(mail))
    assert link_tokens.verify(office.services.keyring, token).user_id == user.user_id


async def test_a_message_by_hand_about_a_decision_is_the_common_mail(office: PostOffice) -> None:
    user = await office.user("agent_user")
    await office.notify(user, title="Please decide", type="approval_requested")
    (mail,) = await office.own_mails(user)
    assert text_of(mail) == "Please decide\n\nText.\n"
