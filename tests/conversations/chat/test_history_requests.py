"""The part of a conversation that the model receives."""

import asyncio
from typing import Any

from app.domain.agents.llm.protocol import estimate_tokens
from app.domain.conversations.chat.start_turn import read_history
from app.kit.ids import new_id
from app.services import Services
from db.session import ALL_TENANTS
from tests.conversations.chat.database import execute
from tests.model_server import Reply
from tests.scripted_agents import Talker


async def _insert_messages(
    services: Services, talk: Talker, conversation_id: str, contents: list[str]
) -> None:
    """Inserts messages of user and assistant alternately."""
    rows = [
        (
            talk.client.tenant_id,
            new_id("msg"),
            talk.agent_id,
            conversation_id,
            "assistant" if number % 2 else "user",
            content,
        )
        for number, content in enumerate(contents)
    ]
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).executemany(
            "INSERT INTO conversation_entries"
            " (tenant_id, id, agent_id, conversation_id, type, role, content)"
            " VALUES ($1, $2, $3, $4, 'message', $5, $6)",
            rows,
        )


async def _send_and_read_history(talk: Talker, conversation_id: str) -> list[dict[str, Any]]:
    """Sends a question and returns the messages between the prompt and the question."""
    await talk.say("And now?", conversation_id=conversation_id)
    messages: list[dict[str, Any]] = talk.asked[-1]["messages"]
    first, *past, last = messages
    assert first["role"] == "system"
    assert last["role"] == "user"
    assert last["content"].endswith("And now?")
    return past


async def test_at_most_two_hundred_messages_are_sent(talk: Talker, services: Services) -> None:
    conversation_id = (await talk.say("Hi"))["conversation_id"]
    await _insert_messages(services, talk, conversation_id, [str(number) for number in range(300)])
    past = await _send_and_read_history(talk, conversation_id)
    assert [message["content"] for message in past] == [str(number) for number in range(100, 300)]
    assert past[0]["role"] == "user"


async def test_a_cut_in_the_middle_of_a_turn_starts_with_the_next_question(
    talk: Talker, services: Services
) -> None:
    conversation_id = (await talk.say("Hi"))["conversation_id"]
    await _insert_messages(services, talk, conversation_id, [str(number) for number in range(301)])
    past = await _send_and_read_history(talk, conversation_id)
    assert past[0] == {"role": "user", "content": "102"}
    assert len(past) == 198
    # The last one has no answer and is joined with the question.
    assert talk.asked[-1]["messages"][-1]["content"] == "300\n\nAnd now?"


async def test_a_long_conversation_fits_the_models_window(talk: Talker, services: Services) -> None:
    conversation_id = (await talk.say("Hi"))["conversation_id"]
    await _insert_messages(
        services, talk, conversation_id, [f"{number} " + "x" * 7000 for number in range(20)]
    )
    past = await _send_and_read_history(talk, conversation_id)
    numbers = [int(message["content"].split()[0]) for message in past]
    assert numbers == list(range(20 - len(past), 20))
    assert past[0]["role"] == "user"
    assert 2 <= len(past) < 20
    # The window of an unknown model without the longest reply.
    tokens = sum(estimate_tokens(message["content"]) for message in talk.asked[-1]["messages"])
    assert tokens <= 16_384 - 2048
    # Two more messages would not fit.
    assert tokens + 2 * estimate_tokens("x" * 7000) > 16_384 - 2048


async def test_a_question_that_fills_the_window_is_sent_without_history(talk: Talker) -> None:
    first = await talk.say("Hi")
    await talk.say("x" * 150_000, conversation_id=first["conversation_id"])
    assert [message["role"] for message in talk.asked[-1]["messages"]] == ["system", "user"]


async def _run_turn_with_call(talk: Talker, helper: Talker) -> str:
    helper.script(Reply(texts=["At 9."]))
    call = ("delegate_to_helper", {"task": "hours"})
    talk.script(Reply(texts=[], calls=[call]), Reply(texts=["It opens at 9."]), Reply())
    reply = await talk.say("When?")
    conversation_id: str = reply["conversation_id"]
    return conversation_id


async def test_calls_of_earlier_turns_are_sent_again(talk: Talker) -> None:
    helper = await talk.with_helper()
    past = await _send_and_read_history(talk, await _run_turn_with_call(talk, helper))
    assert [message["role"] for message in past] == ["user", "assistant", "tool", "assistant"]
    [call] = past[1]["tool_calls"]
    assert call["type"] == "function"
    assert call["function"] == {"name": "delegate_to_helper", "arguments": '{"task":"hours"}'}
    assert past[2] == {"role": "tool", "content": "At 9.", "tool_call_id": call["id"]}
    assert past[3] == {"role": "assistant", "content": "It opens at 9."}


async def test_calls_of_earlier_turns_are_left_out_without_tools(
    talk: Talker,
) -> None:
    helper = await talk.with_helper()
    conversation_id = await _run_turn_with_call(talk, helper)
    await talk.client.delete(f"{talk.path}/sub-agents/{helper.agent_id}")
    past = await _send_and_read_history(talk, conversation_id)
    assert [message["content"] for message in past] == ["When?", "It opens at 9."]
    assert "tools" not in talk.asked[-1]


async def test_a_sub_agent_sees_its_task_and_nothing_of_the_conversation(talk: Talker) -> None:
    helper = await talk.with_helper()
    first = await talk.say("My secret")
    call = ("delegate_to_helper", {"task": "hours"})
    talk.script(Reply(texts=[], calls=[call]), Reply())
    fields = {"conversation_id": first["conversation_id"], "context": {"plan": "gold"}}
    await talk.say("When?", **fields)
    assert helper.asked[0]["messages"] == [
        {"role": "system", "content": "You are a test."},
        {"role": "user", "content": "hours"},
    ]


async def test_each_of_many_concurrent_turns_sees_the_turns_before_it(talk: Talker) -> None:
    """A request that finds the conversation busy is repeated."""
    conversation_id = (await talk.say("First"))["conversation_id"]

    async def send(message: str) -> None:
        body = {"message": message, "conversation_id": conversation_id}
        async with asyncio.timeout(30):
            while (await talk.client.post(f"{talk.path}/chat", body)).status_code != 200:
                pass

    await asyncio.gather(*(send(f"Number {number}") for number in range(12)))
    lengths = [len(request["messages"]) for request in talk.asked]
    assert lengths == [2 + 2 * number for number in range(13)]


async def test_messages_beyond_the_size_limit_are_not_read(
    talk: Talker, services: Services
) -> None:
    conversation_id = (await talk.say("Start"))["conversation_id"]
    await execute(
        services,
        "UPDATE conversation_entries SET content = repeat('x', 200000) "
        "WHERE conversation_id = $1 AND role = 'user'",
        conversation_id,
    )
    for number in range(3):
        await talk.say(f"More {number}", conversation_id=conversation_id)
    async with services.db.tx(talk.client.tenant_id, autocommit=True) as tx:
        history_messages = await read_history(tx, talk.client.tenant_id, conversation_id)
    assert [item.content[:10] for item in history_messages][-2:] == ["More 2", "Hello ther"]
    assert sum(len(item.content) for item in history_messages) < 250_000
