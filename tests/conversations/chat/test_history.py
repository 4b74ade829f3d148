"""The selection of the newest messages that fit a budget of tokens: pure, no server."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.agents.llm.protocol import Message, upper_bound_tokens
from app.domain.conversations.chat import history
from app.domain.conversations.chat.history import (
    PastMessage,
    budget_for,
    select_history,
    system_message,
)

UNLIMITED = 1_000_000


def _build_messages(*contents: str) -> list[PastMessage]:
    """Builds messages of user and assistant alternately."""
    return [
        PastMessage("assistant" if number % 2 else "user", content)
        for number, content in enumerate(contents)
    ]


def _build_call(number: int = 1, **more: Any) -> dict[str, Any]:
    call = {
        "id": f"call_{number}",
        "function": "delegate_to_helper",
        "input": {"task": "x"},
        "output": "done",
    }
    return call | more


def _select_contents(past: list[PastMessage], budget: int = UNLIMITED) -> list[str]:
    return [message.content for message in select_history(past, budget, with_calls=True)]


def _count_tokens(*contents: str) -> int:
    return sum(4 + upper_bound_tokens(content) for content in contents)


def _count_all_tokens(messages: list[Message]) -> int:
    """Counts the tokens of messages and of the calls in them."""
    arguments = [call.arguments for message in messages for call in message.tool_calls]
    return _count_tokens(*(message.content for message in messages)) + sum(
        map(upper_bound_tokens, arguments)
    )


# Selection


def test_all_messages_are_selected_in_order_when_they_fit() -> None:
    messages = select_history(_build_messages("a", "b", "c", "d"), UNLIMITED, with_calls=True)
    assert messages == [
        Message("user", "a"),
        Message("assistant", "b"),
        Message("user", "c"),
        Message("assistant", "d"),
    ]


def test_nothing_is_selected_without_a_budget() -> None:
    assert select_history(_build_messages("a", "b"), 0, with_calls=True) == []
    assert select_history([], UNLIMITED, with_calls=True) == []


def test_the_newest_messages_may_use_the_whole_budget() -> None:
    past = _build_messages("a" * 70, "b" * 70, "c" * 70, "d" * 70)
    needed = _count_tokens("c" * 70, "d" * 70)
    assert _select_contents(past, needed) == ["c" * 70, "d" * 70]
    assert _select_contents(past, needed - 1) == []


def test_the_selection_starts_with_a_user_message() -> None:
    past = _build_messages("a", "b", "c", "d")
    assert _select_contents(past, _count_tokens("b", "c", "d")) == ["c", "d"]
    assert _select_contents([PastMessage("assistant", "an answer alone")]) == []
    assert _select_contents([PastMessage("assistant", "x"), *_build_messages("a", "b")]) == [
        "a",
        "b",
    ]


def test_a_message_that_does_not_fit_ends_the_selection() -> None:
    """Older messages are not selected either."""
    past = _build_messages("a", "b", "c" * 10_000, "d", "e", "f")
    assert _select_contents(past, 500) == ["e", "f"]


def test_questions_without_an_answer_are_selected() -> None:
    past = [
        PastMessage("user", "lost"),
        PastMessage("user", "again"),
        PastMessage("assistant", "yes"),
    ]
    assert _select_contents(past) == ["lost", "again", "yes"]


@given(
    past=st.lists(
        st.builds(
            PastMessage,
            st.sampled_from(["user", "assistant"]),
            st.text("ab \n\u00e9\U0001f30d", max_size=60),
            st.lists(st.builds(_build_call, st.integers(1, 9)), max_size=2),
        ).filter(lambda item: item.role == "user" or item.content or item.tool_calls),
        max_size=12,
    ),
    budget=st.integers(0, 400),
    with_calls=st.booleans(),
)
def test_the_selection_is_the_longest_suffix_that_fits(
    past: list[PastMessage], budget: int, *, with_calls: bool
) -> None:
    selection = select_history(past, budget, with_calls=with_calls)
    messages = [history._messages(item, with_calls=with_calls) for item in past]
    suffixes = [
        [message for item in messages[start:] for message in item] for start in range(len(past) + 1)
    ]
    assert selection in suffixes
    assert not selection or selection[0].role == "user"
    assert _count_all_tokens(selection) <= budget
    # A longer suffix that starts with a user message does not fit.
    longer = [suffix for suffix in suffixes if len(suffix) > len(selection)]
    for suffix in longer:
        assert suffix[0].role != "user" or _count_all_tokens(suffix) > budget


# Calls of earlier turns


def test_calls_are_selected_with_their_results() -> None:
    past = [
        PastMessage("user", "q"),
        PastMessage("assistant", "a", [_build_call(1), _build_call(2, output={"n": 1})]),
    ]
    question, calling, first, second, answer = select_history(past, UNLIMITED, with_calls=True)
    assert question == Message("user", "q")
    assert (calling.role, calling.content) == ("assistant", "")
    assert [(call.id, call.name, call.arguments) for call in calling.tool_calls] == [
        ("call_1", "delegate_to_helper", '{"task":"x"}'),
        ("call_2", "delegate_to_helper", '{"task":"x"}'),
    ]
    assert first == Message("tool", "done", tool_call_id="call_1")
    assert second == Message("tool", '{"n":1}', tool_call_id="call_2")
    assert answer == Message("assistant", "a")


def test_without_tools_no_calls_are_selected() -> None:
    past = [PastMessage("user", "q"), PastMessage("assistant", "a", [_build_call()])]
    messages = select_history(past, UNLIMITED, with_calls=False)
    assert messages == [Message("user", "q"), Message("assistant", "a")]


def test_calls_of_a_sub_agent_are_left_out() -> None:
    past = [
        PastMessage("user", "q"),
        PastMessage("assistant", "a", [_build_call(1), _build_call(2, function="")]),
    ]
    calling = select_history(past, UNLIMITED, with_calls=True)[1]
    assert [call.id for call in calling.tool_calls] == ["call_1"]


def test_a_reply_and_its_calls_are_selected_together_or_not_at_all() -> None:
    past = [
        PastMessage("user", "q"),
        PastMessage("assistant", "a", [_build_call(output="x" * 7000)]),
        PastMessage("user", "?"),
    ]
    assert _select_contents(past, 100) == ["?"]


def test_a_long_output_is_cut() -> None:
    past = [
        PastMessage("user", "q"),
        PastMessage("assistant", "a", [_build_call(output="x" * 60_000)]),
    ]
    result = select_history(past, UNLIMITED, with_calls=True)[2]
    assert len(result.content) < 51_000
    assert result.content.endswith("… (cut)")


def test_arguments_of_calls_count_against_the_budget() -> None:
    long = _build_call(input={"task": "x" * 100_000})
    past = [
        PastMessage("user", "q"),
        PastMessage("assistant", "a", [long]),
        PastMessage("user", "?"),
    ]
    assert _select_contents(past, 1000) == ["?"]


# Budget


@pytest.mark.parametrize(
    ("window", "max_tokens", "texts", "budget"),
    [
        (16_384, 2048, (), 16_384 - 2048),
        (16_384, 2048, ("prompt", "question"), 16_384 - 2048 - _count_tokens("prompt", "question")),
        # A model whose window is smaller than the longest reply still receives the question.
        (4096, 1_000_000, (), 2048),
        (4096, 2048, ("x" * 100_000,), 0),
        (1_000_000, 2048, (), 32_000),
        (0, 1, (), 0),
    ],
)
def test_the_budget_is_the_window_without_the_reply_and_the_other_texts(
    window: int, max_tokens: int, texts: tuple[str, ...], budget: int
) -> None:
    assert budget_for(window, max_tokens, *texts) == budget


@pytest.mark.parametrize("context", [None, {}])
def test_without_context_the_system_message_is_the_prompt(context: dict[str, Any] | None) -> None:
    assert system_message("You help.", context) == Message("system", "You help.")


def test_context_follows_the_prompt_as_json() -> None:
    message = system_message("You help.", {"plan": "gold", "ä": [1, None, True]})
    assert message.role == "system"
    assert message.content.startswith("You help.\n")
    assert message.content.endswith('\n{"plan":"gold","ä":[1,null,true]}')


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
def test_the_upper_bound_of_tokens_is_never_too_low(text: str, real: int) -> None:
    """Models count each digit as a token, and other scripts than Latin as more than one."""
    assert real <= upper_bound_tokens(text) <= len(text.encode()) + 1
