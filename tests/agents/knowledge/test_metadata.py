"""Tags, language, groups, validity and fields of documents: how they are set, kept and listed."""

from typing import Any, Final

import pytest

from app.domain.agents.knowledge import metadata
from app.domain.agents.knowledge.schemas import DocumentChange
from app.kit.errors import Invalid
from app.kit.validation import decode
from tests.agents.knowledge.audiences import INSIDE, QUESTION, VISITORS, add_documents
from tests.agents.knowledge.librarian import Librarian
from tests.scripted_agents import Talker

_LONG: Final = "x" * 51
_ALL: Final = {
    "tags": ["faq", "shop"],
    "language": "de",
    "groups": ["gold"],
    "valid_from": "2026-01-01T00:00:00Z",
    "valid_until": "2040-01-01T00:00:00Z",
    "fields": {"product": "mill", "year": 2026, "weight": 1.5, "is_new": True},
}
_NONE: Final[dict[str, Any]] = {
    "tags": [],
    "language": None,
    "groups": [],
    "valid_from": None,
    "valid_until": None,
    "fields": {},
}
_FORM: Final = {
    "tags": ["faq", "shop"],
    "language": "de",
    "groups": "gold",
    "valid_from": "2026-01-01",
    "valid_until": "2040-01-01T01:00:00+01:00",
    "fields": '{"product": "mill", "year": 2026, "weight": 1.5, "is_new": true}',
}


async def upload(
    librarian: Librarian, name: str, text: str, form: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Uploads a file and returns its document once it is read."""
    parts = [("files", (name, text))]
    answer = await librarian.client.http.post(f"{librarian.path}/train", files=parts, data=form)
    assert answer.status_code == 202, answer.text
    return await librarian.wait_for(answer.json()["documents"][0]["id"])


async def change(librarian: Librarian, document_id: str, **fields: Any) -> dict[str, Any]:
    path = f"{librarian.path}/documents/{document_id}"
    answer = await librarian.client.http.patch(path, json=fields)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def _select(document: dict[str, Any]) -> dict[str, Any]:
    return {name: document[name] for name in _ALL}


async def test_metadata_is_set_kept_and_cleared(librarian: Librarian) -> None:
    text = "On Sundays the shop opens at eleven, and the bakery next to it at seven."
    document = await upload(librarian, "a.txt", text)
    assert _select(document) == _NONE | {"language": "en"}
    changed = await change(librarian, document["id"], **_ALL)
    assert _select(changed) == _ALL
    # A new file keeps it, also the language.
    assert _select(await upload(librarian, "a.txt", f"{text} Come in.")) == _ALL
    # Only what is given changes.
    changed = await change(librarian, document["id"], tags=["b"], valid_until=None)
    assert _select(changed) == _ALL | {"tags": ["b"], "valid_until": None}
    # Null stands for the language that was found.
    changed = await change(librarian, document["id"], **_NONE)
    assert _select(changed) == _NONE | {"language": "en"}
    assert _select(await change(librarian, document["id"])) == _select(changed)


async def test_a_form_sets_and_clears_metadata(librarian: Librarian) -> None:
    text = "On Sundays the shop opens at eleven, and the bakery next to it at seven."
    document = await upload(librarian, "a.txt", text, _FORM)
    assert _select(document) == _ALL
    empty = await upload(librarian, "a.txt", text, dict.fromkeys(_FORM, ""))
    assert _select(empty) == _NONE | {"language": "en"}


def test_labels_are_trimmed_and_unique() -> None:
    labels = [" a ", "a", "b", "b  "]
    columns = metadata.list_columns(DocumentChange(tags=labels, groups=labels))
    assert columns == {"tags": ["a", "b"], "groups": ["a", "b"]}


_WRONG: Final[list[tuple[str, object]]] = [
    ("tags", None),
    ("tags", "faq"),
    ("tags", [""]),
    ("tags", [" "]),
    ("tags", ["a\nb"]),
    ("tags", [_LONG]),
    ("tags", ["a"] * 21),
    ("tags", [1]),
    ("groups", None),
    ("groups", [_LONG]),
    ("groups", ["a"] * 21),
    ("language", "german"),
    ("language", "DE"),
    ("language", "de\n"),
    ("language", ""),
    ("valid_from", "soon"),
    ("valid_from", "2026-01-01T00:00:00"),
    ("valid_from", "0001-01-01T00:00:00+14:00"),
    ("valid_until", "9999-12-31T23:59:59-14:00"),
    ("valid_until", 1),
    ("fields", None),
    ("fields", ["a"]),
    ("fields", {"a": None}),
    ("fields", {"a": ["b"]}),
    ("fields", {"a": {"b": 1}}),
    ("fields", {"a": "x" * 501}),
    ("fields", {"a": 2**53}),
    ("fields", {"": 1}),
    ("fields", {" ": 1}),
    ("fields", {_LONG: 1}),
    ("fields", {f"field{number}": 1 for number in range(21)}),
    ("colour", "red"),
]


async def test_wrong_values_are_refused(librarian: Librarian, subtests: pytest.Subtests) -> None:
    document = await upload(librarian, "a.txt", "A text.")
    path = f"{librarian.path}/documents/{document['id']}"
    late = {"valid_from": "2026-01-02T00:00:00Z", "valid_until": "2026-01-02T00:00:00Z"}
    bodies: list[dict[str, Any]] = [*({name: value} for name, value in _WRONG), late]
    for body in bodies:
        with subtests.test(body=str(body)[:100]):
            answer = await librarian.client.http.patch(path, json=body)
            assert answer.status_code == 422, answer.text
            assert list(body)[-1] in answer.text
    assert _select(await librarian.document(document["id"])) == _select(document)


_WRONG_FORMS: Final[list[dict[str, Any]]] = [
    {"tags": ["x" * 51]},
    {"tags": ["a"] * 21},
    {"groups": ["a\nb"]},
    {"language": "german"},
    {"language": ["de", "en"]},
    {"valid_from": "soon"},
    {"valid_from": "2026-01-02", "valid_until": "2026-01-01"},
    {"fields": "product"},
    {"fields": "[1]"},
    {"fields": '{"a": [1]}'},
    {"fields": '{"a": "\\u0000"}'},
    {"visibility": "secret"},
]


async def test_wrong_forms_are_refused(librarian: Librarian, subtests: pytest.Subtests) -> None:
    for form in _WRONG_FORMS:
        with subtests.test(form=str(form)[:100]):
            answer = await librarian.client.http.post(
                f"{librarian.path}/train", files=[("files", ("a.txt", "A text."))], data=form
            )
            assert answer.status_code == 422, answer.text
            assert list(form)[-1] in answer.text
    listed = (await librarian.client.get(f"{librarian.path}/documents")).json()
    assert listed["data"] == []


async def test_documents_are_listed_by_their_metadata(
    librarian: Librarian, subtests: pytest.Subtests
) -> None:
    german = "Am Sonntag öffnet der Laden um elf Uhr, und die Bäckerei daneben um sieben."
    plain = "On Sundays the shop opens at eleven, and the bakery next to it at seven."
    await upload(librarian, "faq.txt", plain, {"tags": "faq", "groups": "gold"})
    await upload(librarian, "old.txt", plain, {"tags": ["faq", "old"], "valid_until": "2020-01-01"})
    await upload(librarian, "german.txt", german, {"valid_from": "2020-01-01"})
    await upload(librarian, "new.txt", plain, {"language": "de", "valid_from": "2090-01-01"})
    for query, names in (
        ({"tag": "faq"}, {"faq.txt", "old.txt"}),
        ({"tag": "fa"}, set()),
        ({"group": "gold"}, {"faq.txt"}),
        ({"language": "de"}, {"german.txt", "new.txt"}),
        ({"valid": True}, {"faq.txt", "german.txt"}),
        ({"valid": False}, {"old.txt", "new.txt"}),
        ({"valid": True, "tag": "faq", "search": "f"}, {"faq.txt"}),
    ):
        with subtests.test(query=query):
            answer = await librarian.client.get(f"{librarian.path}/documents", params=query)
            assert {document["name"] for document in answer.json()["data"]} == names


def test_a_change_of_several_wrong_values_names_each() -> None:
    with pytest.raises(Invalid) as refusal:
        decode(b'{"tags": [""], "language": "x", "fields": {"a": null}}', DocumentChange)
    assert {"tags.0", "language", "fields.a"} <= set(str(refusal.value.details).split("'"))


# Searching


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
    {"fields": {f"f{number}": 1 for number in range(21)}},
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
