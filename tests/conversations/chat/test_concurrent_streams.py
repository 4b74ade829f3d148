import asyncio

from tests.conversations.chat.conversation_helpers import list_messages
from tests.conversations.chat.stream_helpers import conversation_of, stream_chat
from tests.lengths import rounds
from tests.model_server import Reply
from tests.scripted_agents import Talker, texts_of
from tests.server import Server


async def test_concurrent_streams_are_complete_and_separate(talk: Talker, server: Server) -> None:
    streams, length = rounds(8, 50), rounds(20, 40)
    talk.script(Reply(texts=[f"{number} " for number in range(length)], delay=0.01))
    all_events = await asyncio.gather(
        *(stream_chat(server, talk, f"Question {number}") for number in range(streams))
    )
    text = "".join(f"{number} " for number in range(length))
    for events in all_events:
        first, *deltas, last = (name for name, _ in events)
        assert (first, set(deltas), last) == ("message_start", {"content_delta"}, "message_stop")
        # Texts that arrive in one packet, as they may on a busy machine, are one delta.
        assert len(deltas) <= length
        assert texts_of(events) == text
    conversations = [conversation_of(events) for events in all_events]
    assert len(set(conversations)) == streams
    for number, conversation_id in enumerate(conversations):
        messages = await list_messages(talk, conversation_id)
        assert [item["content"] for item in messages] == [f"Question {number}", text]
