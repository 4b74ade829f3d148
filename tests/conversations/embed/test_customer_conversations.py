"""The conversations of customers, whom a user token names."""

from typing import Any

import pytest

from tests.conversations.embed.sites import Site, error_of
from tests.conversations.embed.visits import Visit, create_shop, open_session, sign_user, visit_as
from tests.scripted_agents import Talker


async def _list(customer: Visit) -> list[dict[str, Any]]:
    answer = await customer.call("GET conversations")
    assert answer.status_code == 200, answer.text
    listed: list[dict[str, Any]] = answer.json()["data"]
    return listed


async def _switch(customer: Visit, conversation: str) -> Visit:
    answer = await customer.renew(conversation=conversation)
    assert answer.status_code == 200, answer.text
    session = answer.json()
    return Visit(customer.site, session["token"], session["session_id"], customer.origin)


async def _read(customer: Visit) -> list[str]:
    return [message["content"] for message in (await customer.load())["messages"]]


async def test_a_customer_begins_and_continues_conversations(site: Site) -> None:
    first = await visit_as(site)
    assert (await _list(first), (await first.load())["has_earlier"]) == ([], False)
    await first.say("About the order")
    second = await _switch(first, "new")
    assert second.session_id.startswith(f"{first.session_id}_")
    assert (await _read(second), (await second.load())["has_earlier"]) == ([], True)
    await second.say("About the invoice")
    titles = {item["session_id"]: item["title"] for item in await _list(second)}
    expected = {second.session_id: "About the invoice", first.session_id: "About the order"}
    assert list(titles.items()) == list(expected.items())
    again = await _switch(second, first.session_id)
    assert await _read(again) == ["About the order", "Hello there"]


async def test_a_customer_goes_on_with_the_latest_conversation(site: Site) -> None:
    first = await visit_as(site)
    await first.say("About the order")
    second = await _switch(first, "new")
    # Nothing was said in it yet.
    assert (await visit_as(site)).session_id == first.session_id
    await second.say("About the invoice")
    assert (await visit_as(site)).session_id == second.session_id
    await first.say("About the order again")
    assert (await visit_as(site)).session_id == first.session_id


async def test_a_user_token_opens_the_wanted_conversation(site: Site) -> None:
    first = await visit_as(site)
    await first.say("About the order")
    answer = await open_session(site, user_token=sign_user(site), conversation="new")
    assert answer.json()["session_id"].startswith(f"{first.session_id}_")
    answer = await open_session(
        site, user_token=sign_user(site), conversation=answer.json()["session_id"]
    )
    assert answer.status_code == 200, answer.text


async def test_customers_find_only_their_own_conversations(
    talk: Talker, subtests: pytest.Subtests
) -> None:
    site = await create_shop(talk)
    ada = await visit_as(site, "ada")
    await ada.say("A secret")
    for name, other in {
        "another customer": await visit_as(site, "bob"),
        "the same name at another key": await visit_as(await create_shop(talk), "ada"),
    }.items():
        with subtests.test(name):
            assert await _list(other) == []
            assert (await other.load())["has_earlier"] is False
            for wanted in (ada.session_id, f"{ada.session_id}_0123abcd"):
                answer = await other.renew(conversation=wanted)
                assert error_of(answer) == (403, "session_mismatch")


async def test_visitors_without_a_name_have_one_conversation_each(site: Site) -> None:
    answer = await open_session(site, conversation="new")
    assert error_of(answer) == (401, "user_token_required")
    answer = await open_session(site)
    stranger = Visit(site, answer.json()["token"], answer.json()["session_id"], "")
    for answer in (
        await open_session(site, credential=stranger.token, conversation="new"),
        await stranger.call("GET conversations", origin="https://shop.example.com"),
    ):
        assert error_of(answer) == (401, "user_token_required")


@pytest.mark.parametrize(
    "wanted", ["", "old", "new\n", "vis_" + "a" * 32, "usr_" + "a" * 31, "usr_" + "a" * 32 + "_b"]
)
async def test_a_conversation_that_no_customer_has_is_refused(site: Site, wanted: str) -> None:
    answer = await (await visit_as(site)).renew(conversation=wanted)
    assert error_of(answer) == (422, "validation_error")
    assert list(answer.json()["error"]["details"]) == ["conversation"]
