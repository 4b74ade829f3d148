"""The check of the model before a turn: no database connection is held meanwhile."""

import pytest

from app.domain.agents.llm.gateway import Models
from app.domain.agents.llm.protocol import Target
from app.services import Services
from tests.assertions import until
from tests.conversations.chat.conversation_helpers import start_conversation
from tests.db.invitations import get_pool
from tests.model_server import ModelServer, Reply
from tests.scripted_agents import talker
from tests.world import World


@pytest.fixture
def held_connections(services: Services, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of connections that are in use at each check of a model."""
    pool, counts = get_pool(services.db), list[int]()
    check = Models.check

    async def count(self: Models, target: Target) -> None:
        # Others of this process may have one for a moment.
        await until(lambda: pool.checkedout() == 0)
        counts.append(pool.checkedout())
        await check(self, target)

    monkeypatch.setattr(Models, "check", count)
    return counts


async def test_no_connection_is_held_while_the_model_is_checked(
    world: World, models: ModelServer, held_connections: list[int], subtests: pytest.Subtests
) -> None:
    for is_new in (True, False):
        for way in ("chat", "chat/stream"):
            with subtests.test(is_new=is_new, way=way):
                talk = await talker(world, models)
                talk.script(Reply(texts=["Hello"]))
                body = {"message": "Hi"}
                if not is_new:
                    body["conversation_id"] = await start_conversation(talk, "Start")
                held_connections.clear()
                answer = await talk.client.post(f"{talk.path}/{way}", body)
                assert answer.status_code == 200, answer.text
                assert held_connections == [0]
