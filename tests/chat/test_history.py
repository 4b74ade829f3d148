"""What of a conversation the model is shown: the newest part that fits."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.chat import history
from app.domain.chat.history import PastMessage, budget_for, select_history, system_message
from app.domain.chat.start_turn import read_history
from app.domain.models.protocol import Message, estimate_tokens, upper_bound_tokens
from app.kit.ids import new_id
from app.services import Services
from db.session import ALL_TENANTS
from tests.model_server import Reply
from tests.talk import Talker

PLENTY = 1_000_000


def _talk(*contents: str) -> list[PastMessage]:
    """User and assistant in turns."""
    return [
        PastMessage("assistant" if number % 2 else "user", content)
        for number, content in enumerate(contents)
    ]


def _call(number: int = 1, **more: Any) -> dict[str, Any]:
    made = {
        "id": f"call_{number}",
        "function": "delegate_to_helper",
        "input": {"task": "x"},
        "output": "done",
    }
    return made | more


def _shown(past: list[PastMessage], budget: int = PLENTY) -> list[str]:
    return [message.content for message in select_history(past, budget, with_calls=True)]


def _cost(*contents: str) -> int:
    return sum(4 + upper_bound_tokens(content) for content in contents)


def _room(messages: list[Message]) -> int:
    """What messages take, with the calls in them."""
    arguments = [call.arguments for message in messages for call in message.tool_calls]
    return _cost(*(message.content for message in messages)) + sum(
        map(upper_bound_tokens, arguments)
    )


# What fits


def test_all_of_it_is_shown_in_order_where_there_is_room() -> None:
    messages = select_history(_talk("a", "b", "c", "d"), PLENTY, with_calls=True)
    assert messages == [
        Message("user", "a"),
        Message("assistant", "b"),
        Message("user", "c"),
        Message("assistant", "d"),
    ]


def test_nothing_is_shown_where_there_is_no_room() -> None:
    assert select_history(_talk("a", "b"), 0, with_calls=True) == []
    assert select_history([], PLENTY, with_calls=True) == []


def test_the_newest_are_shown_up_to_the_very_last_token() -> None:
    past = _talk("a" * 70, "b" * 70, "c" * 70, "d" * 70)
    needed = _cost("c" * 70, "d" * 70)
    assert _shown(past, needed) == ["c" * 70, "d" * 70]
    assert _shown(past, needed - 1) == []


def test_what_is_shown_starts_with_something_that_the_user_said() -> None:
    past = _talk("a", "b", "c", "d")
    assert _shown(past, _cost("b", "c", "d")) == ["c", "d"]
    assert _shown([PastMessage("assistant", "an answer alone")]) == []
    assert _shown([PastMessage("assistant", "x"), *_talk("a", "b")]) == ["a", "b"]


def test_a_long_message_in_between_leaves_no_gap() -> None:
    """What is older than something that did not fit is not shown either."""
    past = _talk("a", "b", "c" * 10_000, "d", "e", "f")
    assert _shown(past, 500) == ["e", "f"]


def test_questions_without_an_answer_are_shown() -> None:
    past = [
        PastMessage("user", "lost"),
        PastMessage("user", "again"),
        PastMessage("assistant", "yes"),
    ]
    assert _shown(past) == ["lost", "again", "yes"]


@given(
    past=st.lists(
        st.builds(
            PastMessage,
            st.sampled_from(["user", "assistant"]),
            st.text(max_size=60),
            st.lists(st.builds(_call, st.integers(1, 9)), max_size=2),
        ),
        max_size=12,
    ),
    budget=st.integers(0, 400),
    with_calls=st.booleans(),
)
def test_whatever_was_said_the_newest_part_that_fits_is_shown(
    past: list[PastMessage], budget: int, *, with_calls: bool
) -> None:
    shown = select_history(past, budget, with_calls=with_calls)
    everything = [history._messages(item, with_calls=with_calls) for item in past]
    suffixes = [
        [message for item in everything[start:] for message in item]
        for start in range(len(past) + 1)
    ]
    assert shown in suffixes
    assert not shown or shown[0].role == "user"
    assert _room(shown) <= budget
    # A longer one that starts with the user does not fit.
    longer = [suffix for suffix in suffixes if len(suffix) > len(shown)]
    for suffix in longer:
        assert suffix[0].role != "user" or _room(suffix) > budget


# Calls of the past


def test_calls_of_the_past_are_shown_as_they_were() -> None:
    past = [
        PastMessage("user", "q"),
        PastMessage("assistant", "a", [_call(1), _call(2, output={"n": 1})]),
    ]
    question, calling, first, second, answer = select_history(past, PLENTY, with_calls=True)
    assert question == Message("user", "q")
    assert (calling.role, calling.content) == ("assistant", "")
    assert [(call.id, call.name, call.arguments) for call in calling.tool_calls] == [
        ("call_1", "delegate_to_helper", '{"task":"x"}'),
        ("call_2", "delegate_to_helper", '{"task":"x"}'),
    ]
    assert first == Message("tool", "done", tool_call_id="call_1")
    assert second == Message("tool", '{"n":1}', tool_call_id="call_2")
    assert answer == Message("assistant", "a")


def test_a_model_that_can_call_nothing_now_sees_no_calls() -> None:
    past = [PastMessage("user", "q"), PastMessage("assistant", "a", [_call()])]
    messages = select_history(past, PLENTY, with_calls=False)
    assert messages == [Message("user", "q"), Message("assistant", "a")]


def test_calls_that_a_sub_agent_made_are_not_the_agents_own() -> None:
    past = [
        PastMessage("user", "q"),
        PastMessage("assistant", "a", [_call(1), _call(2, function="")]),
    ]
    calling = select_history(past, PLENTY, with_calls=True)[1]
    assert [call.id for call in calling.tool_calls] == ["call_1"]


def test_a_reply_and_its_calls_are_shown_together_or_not_at_all() -> None:
    past = [
        PastMessage("user", "q"),
        PastMessage("assistant", "a", [_call(output="x" * 7000)]),
        PastMessage("user", "?"),
    ]
    assert _shown(past, 100) == ["?"]


def test_a_long_output_is_cut() -> None:
    past = [PastMessage("user", "q"), PastMessage("assistant", "a", [_call(output="x" * 60_000)])]
    result = select_history(past, PLENTY, with_calls=True)[2]
    assert len(result.content) < 51_000
    assert result.content.endswith("… (cut)")


def test_what_a_call_was_made_with_takes_room_as_well() -> None:
    long = _call(input={"task": "x" * 100_000})
    past = [
        PastMessage("user", "q"),
        PastMessage("assistant", "a", [long]),
        PastMessage("user", "?"),
    ]
    assert _shown(past, 1000) == ["?"]


# Room for it


@pytest.mark.parametrize(
    ("window", "max_tokens", "spoken", "room"),
    [
        (16_384, 2048, (), 16_384 - 2048),
        (16_384, 2048, ("prompt", "question"), 16_384 - 2048 - _cost("prompt", "question")),
        # A model whose window is smaller than the longest reply still sees the question.
        (4096, 1_000_000, (), 2048),
        (4096, 2048, ("x" * 100_000,), 0),
        (1_000_000, 2048, (), 32_000),
        (0, 1, (), 0),
    ],
)
def test_the_past_gets_what_the_rest_leaves(
    window: int, max_tokens: int, spoken: tuple[str, ...], room: int
) -> None:
    assert budget_for(window, max_tokens, *spoken) == room


@pytest.mark.parametrize("context", [None, {}])
def test_without_context_the_prompt_stands_alone(context: dict[str, Any] | None) -> None:
    assert system_message("You help.", context) == Message("system", "You help.")


def test_context_follows_the_prompt_as_json() -> None:
    message = system_message("You help.", {"plan": "gold", "ä": [1, None, True]})
    assert message.role == "system"
    assert message.content.startswith("You help.\n")
    assert message.content.endswith('\n{"plan":"gold","ä":[1,null,true]}')


# Through the door


async def _fill(
    services: Services, talk: Talker, conversation_id: str, contents: list[str]
) -> None:
    """Messages the short way, user and assistant in turns."""
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


async def _told(talk: Talker, conversation_id: str) -> list[dict[str, Any]]:
    """What the model is shown between the prompt and the question."""
    await talk.say("And now?", conversation_id=conversation_id)
    told: list[dict[str, Any]] = talk.asked[-1]["messages"]
    first, *past, last = told
    assert first["role"] == "system"
    assert last["role"] == "user"
    assert last["content"].endswith("And now?")
    return past


async def test_at_most_two_hundred_entries_are_shown(talk: Talker, services: Services) -> None:
    conversation_id = (await talk.say("Hi"))["conversation_id"]
    await _fill(services, talk, conversation_id, [str(number) for number in range(300)])
    past = await _told(talk, conversation_id)
    assert [message["content"] for message in past] == [str(number) for number in range(100, 300)]
    assert past[0]["role"] == "user"


async def test_a_cut_in_the_middle_of_a_turn_starts_with_the_next_question(
    talk: Talker, services: Services
) -> None:
    conversation_id = (await talk.say("Hi"))["conversation_id"]
    await _fill(services, talk, conversation_id, [str(number) for number in range(301)])
    past = await _told(talk, conversation_id)
    assert past[0] == {"role": "user", "content": "102"}
    assert len(past) == 198
    # The last of them had no answer: it is asked together with the question.
    assert talk.asked[-1]["messages"][-1]["content"] == "300\n\nAnd now?"


async def test_a_long_conversation_fits_the_models_window(talk: Talker, services: Services) -> None:
    conversation_id = (await talk.say("Hi"))["conversation_id"]
    await _fill(
        services, talk, conversation_id, [f"{number} " + "x" * 7000 for number in range(20)]
    )
    past = await _told(talk, conversation_id)
    numbers = [int(message["content"].split()[0]) for message in past]
    assert numbers == list(range(20 - len(past), 20))
    assert past[0]["role"] == "user"
    assert 2 <= len(past) < 20
    # The window of a model that nobody knows, less the longest reply.
    spent = sum(estimate_tokens(message["content"]) for message in talk.asked[-1]["messages"])
    assert spent <= 16_384 - 2048
    # Nor is room given away: two more would not have fitted.
    assert spent + 2 * estimate_tokens("x" * 7000) > 16_384 - 2048


async def test_a_question_that_fills_the_window_is_asked_without_the_past(talk: Talker) -> None:
    first = await talk.say("Hi")
    await talk.say("x" * 150_000, conversation_id=first["conversation_id"])
    assert [message["role"] for message in talk.asked[-1]["messages"]] == ["system", "user"]


async def _with_call(talk: Talker, helper: Talker) -> str:
    helper.script(Reply(texts=["At 9."]))
    call = ("delegate_to_helper", {"task": "hours"})
    talk.script(Reply(texts=[], calls=[call]), Reply(texts=["It opens at 9."]), Reply())
    reply = await talk.say("When?")
    conversation_id: str = reply["conversation_id"]
    return conversation_id


async def test_calls_of_earlier_turns_are_shown_again(talk: Talker) -> None:
    helper = await talk.with_helper()
    past = await _told(talk, await _with_call(talk, helper))
    assert [message["role"] for message in past] == ["user", "assistant", "tool", "assistant"]
    [call] = past[1]["tool_calls"]
    assert call["type"] == "function"
    assert call["function"] == {"name": "delegate_to_helper", "arguments": '{"task":"hours"}'}
    assert past[2] == {"role": "tool", "content": "At 9.", "tool_call_id": call["id"]}
    assert past[3] == {"role": "assistant", "content": "It opens at 9."}


async def test_calls_of_earlier_turns_are_left_out_once_nothing_can_be_called(
    talk: Talker,
) -> None:
    helper = await talk.with_helper()
    conversation_id = await _with_call(talk, helper)
    await talk.client.delete(f"{talk.path}/sub-agents/{helper.agent_id}")
    past = await _told(talk, conversation_id)
    assert [message["content"] for message in past] == ["When?", "It opens at 9."]
    assert "tools" not in talk.asked[-1]


async def test_a_sub_agent_sees_its_task_and_nothing_of_the_conversation(talk: Talker) -> None:
    helper = await talk.with_helper()
    first = await talk.say("My secret")
    call = ("delegate_to_helper", {"task": "hours"})
    talk.script(Reply(texts=[], calls=[call]), Reply())
    again = {"conversation_id": first["conversation_id"], "context": {"plan": "gold"}}
    await talk.say("When?", **again)
    assert helper.asked[0]["messages"] == [
        {"role": "system", "content": "You are a test."},
        {"role": "user", "content": "hours"},
    ]


async def test_a_turn_that_follows_another_at_once_sees_all_of_it(talk: Talker) -> None:
    """Many want the conversation; whoever gets it next knows what was said until then."""
    conversation_id = (await talk.say("First"))["conversation_id"]

    async def one(name: str) -> None:
        body = {"message": name, "conversation_id": conversation_id}
        async with asyncio.timeout(30):
            while (await talk.client.post(f"{talk.path}/chat", body)).status_code != 200:
                pass

    await asyncio.gather(*(one(f"Number {number}") for number in range(12)))
    lengths = [len(request["messages"]) for request in talk.asked]
    assert lengths == [2 + 2 * number for number in range(13)]


@pytest.mark.parametrize(
    ("text", "real"),
    [
        ("0123456789" * 40, 400),
        ("1 2 3 4 " * 50, 400),
        ("\u4f60\u597d" * 200, 400),
        ("{[()]}" * 50, 100),
        ("plain words " * 30, 60),
    ],
)
def test_what_must_fit_is_never_counted_too_low(text: str, real: int) -> None:
    """Models count digits one by one, and what is not English dearer still."""
    assert real <= upper_bound_tokens(text) <= len(text.encode()) + 1


async def test_huge_messages_are_not_even_read(talk: Talker, services: Services) -> None:
    conversation_id = (await talk.say("Start"))["conversation_id"]
    async with services.db.tx(ALL_TENANTS) as tx:
        await (await tx.raw()).execute(
            "UPDATE conversation_entries SET content = repeat('x', 200000) "
            "WHERE conversation_id = $1 AND role = 'user'",
            conversation_id,
        )
    for number in range(3):
        await talk.say(f"More {number}", conversation_id=conversation_id)
    async with services.db.tx(talk.client.tenant_id, autocommit=True) as tx:
        found = await read_history(tx, talk.client.tenant_id, conversation_id)
    assert [item.content[:10] for item in found][-2:] == ["More 2", "Hello ther"]
    assert sum(len(item.content) for item in found) < 250_000
