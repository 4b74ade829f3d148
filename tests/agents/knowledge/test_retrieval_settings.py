"""The retrieval settings of an agent: where they are kept, and what a turn makes of them."""

from tests.agents.definition.api_calls import list_event_data
from tests.agents.knowledge.librarian import Librarian
from tests.assertions import refused
from tests.model_server import Reply
from tests.scripted_agents import Talker

_SEVEN_HOURS = "\n\n".join(
    f"# Branch {n}\n\nThe shop in branch {n} opens at {n}." for n in range(7)
)


async def test_a_put_replaces_all_settings_and_is_told(librarian: Librarian) -> None:
    path = f"{librarian.path}/retrieval"
    defaults = (await librarian.client.get(path)).json()
    assert defaults["max_passages"] == 5
    answer = await librarian.client.http.put(path, json={"max_passages": 2})
    assert (answer.status_code, answer.json()["max_passages"]) == (200, 2)
    assert (await librarian.client.get(path)).json()["max_passages"] == 2
    assert (await librarian.client.http.put(path, json={})).json() == defaults
    assert (await librarian.client.get(path)).json() == defaults
    told = await list_event_data(librarian.client, "agent.updated")
    assert [data["changed"] for data in told] == [["retrieval"], ["retrieval"]]


async def test_settings_out_of_range_are_refused(librarian: Librarian) -> None:
    answer = await librarian.client.http.put(
        f"{librarian.path}/retrieval", json={"max_passages": 0}
    )
    error = refused(answer, 422, "validation_error")
    assert "max_passages" in error["details"]


async def test_a_turn_quotes_at_most_that_many_passages(talk: Talker, librarian: Librarian) -> None:
    await librarian.add(branches_md=_SEVEN_HOURS)
    await librarian.client.http.put(f"{librarian.path}/retrieval", json={"max_passages": 1})
    talk.script(Reply(texts=["At three [1]."]))
    assert len((await talk.say("When does the shop in branch 3 open?"))["sources"]) == 1
