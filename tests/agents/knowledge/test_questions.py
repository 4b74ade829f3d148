"""Questions of turns that go on from earlier ones: what is searched for, and what it costs."""

import pytest

from app.domain.agents.knowledge import questions
from app.domain.conversations.chat.history import PastMessage, list_questions
from app.services import Services
from tests.agents.knowledge.librarian import HANDBOOK, Librarian
from tests.assertions import refused
from tests.conversations.embed.sites import create_site
from tests.database import fetch_rows
from tests.model_server import Reply
from tests.scripted_agents import Talker

_FIRST = "When does the shop open?"
_NEXT = "And on Sundays?"
_WHOLE = "When does the shop open on Sundays?"


async def _set(librarian: Librarian, **settings: object) -> None:
    answer = await librarian.client.http.put(f"{librarian.path}/retrieval", json=settings)
    assert answer.status_code == 200, answer.text


async def _converse(talk: Talker, *more: str) -> list[str]:
    """Asks all questions in one conversation; returns the headings that the last turn quotes."""
    reply = await talk.say(_FIRST)
    for question in more:
        reply = await talk.say(question, conversation_id=reply["conversation_id"])
    return [source["metadata"]["heading"] for source in reply["sources"]]


async def test_a_follow_up_is_searched_with_the_words_of_the_question_before(
    talk: Talker, librarian: Librarian
) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    assert (await _converse(talk, _NEXT, "Why?"))[0] == "Opening hours"
    await _set(librarian, complete_questions="off")
    assert await _converse(talk, "Why?") == []
    visitor = await create_site(talk)
    await _set(librarian)
    first = await visitor.say(_FIRST)
    again = await visitor.say("Why?", session_id=first["session_id"])
    assert again["sources"][0]["metadata"]["heading"] == "Opening hours"


async def test_a_model_is_asked_for_follow_ups_only_and_counted(
    talk: Talker, librarian: Librarian, services: Services
) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    helper = await talk.agent("Rewriter")
    await _set(librarian, complete_questions="model", question_model=f"scripted/{helper.model}")
    helper.script(Reply(texts=[_WHOLE], usage=(40, 9)))
    assert (await _converse(talk, _NEXT))[0] == "Opening hours"
    await _converse(talk, "How long can goods be returned with a receipt?")
    (request,) = helper.asked
    assert request["messages"][1]["content"] == f"- {_FIRST}\n- {_NEXT}"
    sql = """SELECT model, prompt_tokens, completion_tokens FROM usage
             WHERE agent_id = $1 AND source = 'question'"""
    (row,) = await fetch_rows(services, sql, talk.agent_id)
    assert tuple(row.values()) == (f"scripted/{helper.model}", 40, 9)


async def test_the_agent_s_own_model_is_asked_unless_another_is_named(
    talk: Talker, librarian: Librarian
) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    await _set(librarian, complete_questions="model")
    talk.script(Reply(texts=["At nine."]), Reply(texts=[_WHOLE]), Reply(texts=["At eleven."]))
    assert (await _converse(talk, _NEXT))[0] == "Opening hours"
    assert "Write the newest one anew" in talk.asked[1]["messages"][0]["content"]


async def test_words_take_the_place_of_a_model_that_fails(
    talk: Talker,
    librarian: Librarian,
    monkeypatch: pytest.MonkeyPatch,
    subtests: pytest.Subtests,
) -> None:
    await librarian.add(handbook_md=HANDBOOK)
    monkeypatch.setattr(questions, "MODEL_SECONDS", 0.3)
    helper = await talk.agent("Rewriter")
    await _set(librarian, complete_questions="model", question_model=f"scripted/{helper.model}")
    for name, reply in (
        ("refusal", Reply(status=401)),
        ("time-out", Reply(first_delay=20)),
        ("too long", Reply(texts=["x" * 501])),
        ("cut off", Reply(finish_reason="length")),
        ("empty", Reply(texts=[" "])),
        ("no JSON", Reply(raw=b"<html>")),
    ):
        with subtests.test(name):
            helper.script(reply)
            assert (await _converse(talk, "Why?"))[0] == "Opening hours"
    with subtests.test("no key"):
        await _set(librarian, complete_questions="model", question_model="openai/gpt-4o")
        assert (await _converse(talk, "Why?"))[0] == "Opening hours"


async def test_a_model_that_is_of_no_use_is_refused(
    librarian: Librarian, subtests: pytest.Subtests
) -> None:
    cases = {"local/smollm2": "must be a provider's model", "nobody/x": "does not start with"}
    for model, problem in cases.items():
        with subtests.test(model=model):
            answer = await librarian.client.http.put(
                f"{librarian.path}/retrieval", json={"question_model": model}
            )
            details = refused(answer, 422, "validation_error")["details"]
            assert details["question_model"].startswith(problem)


def test_the_results_of_a_client_s_functions_are_about_the_question_before() -> None:
    past = [PastMessage("user", "1"), PastMessage("assistant", "a"), PastMessage("user", "2")]
    assert list_questions("", past) == ["1", "2"]
    assert list_questions("3", past) == ["1", "2", "3"]
    assert list_questions("4", [*past, PastMessage("user", "3")]) == ["2", "3", "4"]
    assert list_questions("", []) == [""]
    assert list_questions("1", past, []) == ["1"]
