"""Delegation in asynchronous turns."""

from app.services import Services
from tests.conversations.chat.delegation_scripts import add_sub_agent, build_call, reply_with_calls
from tests.conversations.chat.job_helpers import (
    accept_job,
    get_job,
    run_job,
    run_new_job,
    run_next_attempt,
)
from tests.model_server import Reply
from tests.scripted_agents import Talker

# The wait is so long that the gateway leaves the retry to the next attempt.
BUSY_REPLY = Reply(status=429, headers={"Retry-After": "30"})


async def test_an_asynchronous_turn_delegates(talk: Talker, services: Services) -> None:
    child = await add_sub_agent(talk, "Kid")
    child.script(Reply(texts=["Done."], usage=(300, 30)))
    talk.script(
        reply_with_calls(build_call("kid"), usage=(10, 1)), Reply(texts=["Fine."], usage=(20, 2))
    )
    job = await run_new_job(talk, services)
    assert job["status"] == "completed"
    assert job["reply"]["message"]["content"] == "Fine."
    assert [call["output"] for call in job["reply"]["tool_calls"]] == ["Done."]
    assert job["reply"]["usage"]["total_tokens"] == 363


async def test_a_second_attempt_continues_after_the_calls_of_the_first(
    talk: Talker, services: Services
) -> None:
    child = await add_sub_agent(talk, "Kid")
    child.script(Reply(texts=["Done."]))
    talk.script(
        reply_with_calls(build_call("kid"), texts=["Wait."]), BUSY_REPLY, Reply(texts=["Fine."])
    )
    job = await accept_job(talk)
    await run_job(services, job)
    assert (await get_job(talk, job))["status"] == "running"
    await run_next_attempt(services, job)
    job = await get_job(talk, job)
    assert job["reply"]["message"]["content"] == "Wait.\n\nFine."
    assert [call["output"] for call in job["reply"]["tool_calls"]] == ["Done."]
    assert len(child.asked) == 1


async def test_a_second_attempt_counts_the_tokens_of_the_first_attempts_children(
    talk: Talker, services: Services
) -> None:
    child = await add_sub_agent(talk, "Kid")
    child.script(Reply(usage=(300, 30)))
    talk.script(
        reply_with_calls(build_call("kid"), usage=(10, 1)), BUSY_REPLY, Reply(usage=(20, 2))
    )
    job = await run_new_job(talk, services)
    await run_next_attempt(services, job)
    job = await get_job(talk, job)
    assert job["reply"]["usage"]["total_tokens"] == 363


async def test_a_second_attempt_has_the_calls_of_the_children(
    talk: Talker, services: Services
) -> None:
    child = await add_sub_agent(talk, "Kid")
    await add_sub_agent(child, "Grandkid")
    child.script(reply_with_calls(build_call("grandkid")), Reply())
    talk.script(reply_with_calls(build_call("kid")), BUSY_REPLY, Reply())
    job = await run_new_job(talk, services)
    await run_next_attempt(services, job)
    calls = (await get_job(talk, job))["reply"]["tool_calls"]
    assert [call["tool"] for call in calls] == ["Kid", "Grandkid"]
