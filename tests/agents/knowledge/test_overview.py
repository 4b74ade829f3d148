"""What all agents know, and what each part of a search says about a passage."""

from typing import Any

import pytest

from tests.agents.knowledge.librarian import HANDBOOK, Librarian
from tests.assertions import refused
from tests.scripted_agents import Talker
from tests.world import Client

_PATH = "/api/v1/knowledge"


async def _list(user: Client, **params: str) -> list[dict[str, Any]]:
    answer = await user.get(_PATH, params=params)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["data"]
    return rows


async def test_agents_are_listed_with_the_figures_of_their_documents(
    librarian: Librarian,
) -> None:
    accepted = await librarian.upload(handbook_md=HANDBOOK, scan_exe=b"MZ")
    await librarian.wait_for(accepted["documents"][0]["id"])
    [row] = await _list(librarian.client)
    figures = row["documents"]
    assert (row["id"], row["name"]) == (librarian.agent_id, "Talker")
    assert (figures["count"], figures["failed_count"], figures["working_count"]) == (2, 1, 0)
    assert figures["passage_count"] > 0
    assert figures["changed_at"]


async def test_the_list_is_searched_and_sorted(talk: Talker) -> None:
    body = {"name": "Alpha", "primary_model": "local/smollm2", "system_prompt": "Help."}
    assert (await talk.client.post("/api/v1/agents", body)).status_code == 201
    assert [row["name"] for row in await _list(talk.client, sort="name")] == ["Alpha", "Talker"]
    [row] = await _list(talk.client, search="alp")
    assert row["documents"] == {
        "count": 0,
        "passage_count": 0,
        "failed_count": 0,
        "working_count": 0,
        "changed_at": None,
    }


async def test_nobody_sees_the_knowledge_of_another_tenant(talk: Talker) -> None:
    stranger = await talk.world.user("tenant_admin")
    assert await _list(stranger) == []
    viewer = await talk.world.user("viewer", talk.client.tenant_id)
    refused(await viewer.get(_PATH), 403, "forbidden")


async def test_a_passage_has_the_scores_of_both_parts_of_the_search(
    librarian: Librarian, subtests: pytest.Subtests
) -> None:
    await librarian.add(handbook_md=HANDBOOK, tea_md="# Tea\n\nTea is made of leaves.\n")
    found = await librarian.search("When does the shop open on Sundays?", limit=50)
    best = found[0]
    assert best["document_name"] == "handbook.md"
    assert best["is_quoted"]
    assert 0 < best["vector_score"] <= 1
    assert best["word_score"] > 0
    for passage in found:
        with subtests.test(passage=passage["content"]):
            assert not passage["vector_score"] is passage["word_score"] is None


async def test_no_more_passages_are_quoted_than_a_turn_has(librarian: Librarian) -> None:
    await librarian.add(handbook_md=HANDBOOK, tea_md="# Tea\n\nThe shop opens with tea.\n")
    await librarian.client.put(f"{librarian.path}/retrieval", {"max_passages": 1})
    found = await librarian.search("When does the shop open on Sundays?", limit=50)
    assert [passage["is_quoted"] for passage in found].count(True) == 1
    nothing = await librarian.search("quantum chromodynamics", limit=50)
    assert not any(passage["is_quoted"] for passage in nothing)
