"""Tags, language, groups, validity and fields of documents: how they are set, kept and listed."""

from typing import Any, Final

import pytest

from app.domain.agents.knowledge import metadata
from app.domain.agents.knowledge.schemas import DocumentChange
from app.kit.errors import Invalid
from app.kit.validation import decode
from tests.agents.knowledge.librarian import Librarian

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
