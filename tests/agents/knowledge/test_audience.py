"""Searches find the documents that are for their reader, and that fulfil all filters."""

from typing import Any, Final

import pytest

from app.domain.agents.knowledge import audience_queries
from app.services import Services
from tests.agents.knowledge.audiences import INSIDE, QUESTION, VISITORS, add_documents
from tests.agents.knowledge.librarian import Librarian
from tests.agents.knowledge.test_metadata import change, upload
from tests.database import run_sql
from tests.scripted_agents import Talker


async def _search(librarian: Librarian, **fields: Any) -> set[str]:
    body = {"query": QUESTION, "limit": 50, **fields}
    answer = await librarian.client.post(f"{librarian.path}/search", body)
    assert answer.status_code == 200, answer.text
    return {passage["document_name"].removesuffix(".txt") for passage in answer.json()["data"]}


async def test_each_reader_finds_the_documents_for_them(
    librarian: Librarian, subtests: pytest.Subtests
) -> None:
    ids = await add_documents(librarian)
    for groups, expected in VISITORS.items():
        with subtests.test(groups=groups):
            assert await _search(librarian, only_public=True, groups=list(groups)) == expected
    assert await _search(librarian) == INSIDE
    # A change applies at once.
    await change(librarian, ids["seven"], groups=["gold"])
    assert await _search(librarian, only_public=True) == set()
    await change(librarian, ids["thirteen"], valid_until=None)
    assert await _search(librarian, only_public=True) == {"thirteen"}
    refused = await librarian.client.post(
        f"{librarian.path}/search", {"query": QUESTION, "groups": ["gold"]}
    )
    assert refused.status_code == 422


async def test_a_search_reads_only_what_may_be_hidden(
    librarian: Librarian, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    asked: list[str] = []
    for name in ("list_hidden", "split"):
        monkeypatch.setattr(audience_queries, name, _record(asked, getattr(audience_queries, name)))
    document = await upload(librarian, "a.txt", "The shop opens on Sundays at nine.")
    expired = {"valid_until": "2020-01-01T00:00:00Z"}
    for name, fields, queries in (
        ("inside", {}, []),
        ("an empty filter", {"filter": {"tags": []}}, []),
        ("a visitor", {"only_public": True}, ["list_hidden"]),
        ("a filter", {"filter": {"tags": ["faq"]}}, ["split"]),
    ):
        with subtests.test(name):
            asked.clear()
            await _search(librarian, **fields)
            assert asked == queries
    await change(librarian, document["id"], **expired)
    asked.clear()
    assert await _search(librarian) == set()
    assert asked == ["list_hidden"]


def _record(asked: list[str], function: Any) -> Any:
    async def call(*args: Any) -> Any:
        asked.append(function.__name__)
        return await function(*args)

    return call


async def test_many_hidden_documents_are_hidden_as_well(
    librarian: Librarian, services: Services, subtests: pytest.Subtests
) -> None:
    """So many that the documents are listed that may be found, or a part of the others."""
    ids = await add_documents(librarian)
    tenant_id = librarian.client.tenant_id
    deleted = f"{librarian.path}/documents/{ids['eight']}"
    for kind, count in (("internal", 310), ("public", 600)):
        await run_sql(services, _ADD, tenant_id, librarian.agent_id, kind, count)
        for groups in ((), ("gold", "silver")):
            with subtests.test(kind=kind, groups=groups):
                found = await _search(librarian, only_public=True, groups=list(groups))
                assert found == VISITORS[groups]
    await librarian.client.delete(deleted)
    assert await _search(librarian, only_public=True, groups=["gold"]) == {"seven", "ten"}


_ADD = """
INSERT INTO documents (tenant_id, id, agent_id, name, status, mime_type, size_bytes, visibility)
SELECT $1, $2 || $3 || n, $2, $3 || n, 'ready', 'text/plain', 1, $3
FROM generate_series(1, $4::int) n
"""

_FILTERS: Final[list[tuple[dict[str, Any], set[str]]]] = [
    ({}, {"a", "b", "c"}),
    ({"tags": ["faq"]}, {"a", "b"}),
    ({"tags": [" shop ", "old"]}, {"b", "c"}),
    ({"tags": ["FAQ", "fa"]}, set()),
    ({"languages": ["en"]}, {"a", "b"}),
    ({"languages": ["de", "fr"]}, {"c"}),
    ({"fields": {"product": "mill"}}, {"a", "c"}),
    ({"fields": {"product": ["mill", "oven"]}}, {"a", "b", "c"}),
    ({"fields": {"product": "mill", "year": 2026}}, {"a"}),
    ({"fields": {"year": 2026.0}}, {"a"}),
    ({"fields": {"year": ["2026", True]}}, set()),
    ({"fields": {"is_new": True}}, {"c"}),
    ({"fields": {"is_new": 1}}, set()),
    ({"fields": {"missing": "x"}}, set()),
    ({"tags": ["faq"], "languages": ["en"], "fields": {"product": "oven"}}, {"b"}),
    ({"tags": ["faq"], "languages": ["de"]}, set()),
]


async def _add_marked(librarian: Librarian) -> None:
    marks: dict[str, dict[str, Any]] = {
        "a": {"tags": ["faq"], "fields": {"product": "mill", "year": 2026}},
        "b": {"tags": ["faq", "shop"], "fields": {"product": "oven", "is_new": False}},
        "c": {"tags": ["old"], "language": "de", "fields": {"product": "mill", "is_new": True}},
    }
    texts = {f"{name}_txt": f"The {name} shop opens on Sundays at nine." for name in marks}
    for document in await librarian.add(**texts):
        await change(librarian, document["id"], **marks[document["name"].removesuffix(".txt")])
        if document["name"] != "c.txt":
            await change(librarian, document["id"], language="en")


async def test_a_search_and_an_agent_filter_documents(
    talk: Talker, librarian: Librarian, subtests: pytest.Subtests
) -> None:
    await _add_marked(librarian)
    settings = f"{librarian.path}/retrieval"
    for document_filter, expected in _FILTERS:
        with subtests.test(filter=document_filter):
            assert await _search(librarian, filter=document_filter) == expected
    for document_filter, expected in _FILTERS[:3]:
        with subtests.test(agent=document_filter):
            answer = await talk.client.put(settings, {"filter": document_filter})
            assert answer.status_code == 200, answer.text
            assert await _search(librarian) == expected
            reply = await talk.say(QUESTION)
            names = {source["document_name"][0] for source in reply["sources"]}
            assert names == expected
    # The last one was for a shop or something old; both filters must hold.
    assert await _search(librarian, filter={"tags": ["faq"]}) == {"b"}
    assert (await talk.client.get(settings)).json()["filter"]["tags"] == [" shop ", "old"]


_WRONG_FILTERS: Final[list[dict[str, Any]]] = [
    {"tags": ["a"] * 21},
    {"tags": ["x" * 51]},
    {"tags": "faq"},
    {"languages": ["german"]},
    {"fields": {"a": []}},
    {"fields": {"a": None}},
    {"fields": {"a": ["x"] * 21}},
    {"fields": {f"f{number}": 1 for number in range(11)}},
    {"groups": ["gold"]},
]


async def test_wrong_filters_are_refused(librarian: Librarian, subtests: pytest.Subtests) -> None:
    for document_filter in _WRONG_FILTERS:
        with subtests.test(filter=str(document_filter)[:80]):
            body = {"query": QUESTION, "filter": document_filter}
            answer = await librarian.client.post(f"{librarian.path}/search", body)
            assert answer.status_code == 422, answer.text
            assert f"filter.{next(iter(document_filter))}" in answer.text


async def test_the_chunks_of_a_replaced_file_reach_nobody_new(librarian: Librarian) -> None:
    """A file without text fails, and the chunks of the last version stay."""
    document = await upload(librarian, "a.txt", "The shop opens on Sundays at nine.")
    await change(librarian, document["id"], groups=["gold"], valid_until="2090-01-01T00:00:00Z")
    everybody = {"groups": "", "valid_until": ""}
    assert (await upload(librarian, "a.txt", " ", everybody))["groups"] == []
    assert await _search(librarian, only_public=True) == set()
    assert await _search(librarian, only_public=True, groups=["gold"]) == {"a"}
    # The new groups must be theirs as well.
    await change(librarian, document["id"], groups=["silver"])
    assert await _search(librarian, only_public=True, groups=["gold"]) == set()
    assert await _search(librarian, only_public=True, groups=["gold", "silver"]) == {"a"}
    await upload(librarian, "a.txt", "The shop opens on Sundays at ten.", everybody)
    assert await _search(librarian, only_public=True) == {"a"}


async def test_the_chunks_of_an_expired_file_stay_expired(librarian: Librarian) -> None:
    form = {"valid_until": "2020-01-01"}
    await upload(librarian, "a.txt", "The shop opens on Sundays at nine.", form)
    for valid_until in ("2090-01-01", ""):
        failed = await upload(librarian, "a.txt", " ", {"valid_until": valid_until})
        assert failed["status"] == "failed"
        assert await _search(librarian) == set()
    await upload(librarian, "a.txt", "The shop opens on Sundays at ten.")
    assert await _search(librarian) == {"a"}


async def test_an_evaluation_asks_as_a_visitor_and_with_a_changed_filter(
    librarian: Librarian,
) -> None:
    ids = await add_documents(librarian)
    await change(librarian, ids["eight"], tags=["faq"])
    body = {
        "questions": [{"question": QUESTION, "expected": [{"document_name": "eight.txt"}]}],
        "changed_settings": {"filter": {"tags": ["faq"]}},
    }
    path = f"{librarian.path}/evaluations/retrieval"
    for reader, found in (
        ({}, True),
        ({"only_public": True}, False),
        ({"only_public": True, "groups": ["gold"]}, True),
    ):
        evaluation = (await librarian.client.post(path, {**body, **reader})).json()
        [outcome] = evaluation["questions"]
        names = {passage["document_name"] for passage in outcome["changed"]["passages"]}
        assert names == ({"eight.txt"} if found else set())
        assert (outcome["current"]["rank"] is not None) is found
    refused = await librarian.client.post(path, {**body, "groups": ["gold"]})
    assert refused.status_code == 422
