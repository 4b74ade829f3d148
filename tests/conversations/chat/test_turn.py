"""The reply of one turn, and the request to its model."""

from tests.model_server import Reply
from tests.scripted_agents import Talker


async def test_a_reply_has_every_documented_field(talk: Talker) -> None:
    talk.script(Reply(texts=["The shop ", "opens at 9."], usage=(40, 8)))
    reply = await talk.say("When does the shop open?")
    assert reply["conversation_id"].startswith("cnv_")
    assert reply["message"]["id"].startswith("msg_")
    assert reply["message"]["role"] == "assistant"
    assert reply["message"]["content"] == "The shop opens at 9."
    assert reply["message"]["created_at"].endswith("Z")
    assert reply["usage"] == {"prompt_tokens": 40, "completion_tokens": 8, "total_tokens": 48}
    assert reply["sources"] == []
    assert reply["tool_calls"] == []


async def test_the_model_sees_prompt_history_context_and_question(talk: Talker) -> None:
    talk.script(Reply(texts=["One."]), Reply(texts=["Two."]))
    first = await talk.say("First?")
    await talk.say("Second?", conversation_id=first["conversation_id"], context={"plan": "gold"})
    messages = talk.asked[1]["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert "You are a test." in messages[0]["content"]
    assert '{"plan":"gold"}' in messages[0]["content"]
    assert [message["content"] for message in messages[1:]] == ["First?", "One.", "Second?"]
