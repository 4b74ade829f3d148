"""Mails about pending decisions through a channel of the tenant."""

import pytest

from app.domain.automation.approvals import link_tokens
from tests.automation.approvals.factories import request
from tests.messaging.notifications.center.post_office import PostOffice, text_of
from tests.messaging.notifications.factories import update_channel

# As JSON it is twice as long, and so too long for the data of a notification.
_LONG = '"' * 10_000


def _find_token(text: str) -> str:
    return text.partition("decision=approved&token=")[2].split()[0]


async def test_a_channel_sends_each_user_links_of_their_own(office: PostOffice) -> None:
    await office.create_channel("sendgrid")
    users = {user.email: user for user in [await office.user("agent_user") for _ in range(2)]}
    approval_id = await request(office.services, office.tenant_id, message=_LONG)
    await office.wait_until_idle()
    mails = office.channel_mails()
    assert len(mails) == len(users)
    for mail in mails:
        user = users.pop(mail["personalizations"][0]["to"][0]["email"])
        assert mail["subject"] == "Your decision is needed: Refund order 4711"
        text = next(part["value"] for part in mail["content"] if part["type"] == "text/plain")
        assert _LONG in text
        claims = link_tokens.verify(office.services.keyring, _find_token(text))
        assert (claims.approval_id, claims.user_id) == (approval_id, user.user_id)


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
