"""Documents for different readers, and what each reader may find."""

from typing import Any, Final

from tests.agents.knowledge.librarian import Librarian

QUESTION: Final = "When does the shop open on Sundays?"
# By what their texts say.
DOCUMENTS: Final[dict[str, dict[str, Any]]] = {
    "seven": {},
    "eight": {"groups": ["gold"]},
    "nine": {"groups": ["silver"]},
    "ten": {"groups": ["silver", "gold"]},
    "eleven": {"visibility": "internal"},
    "twelve": {"visibility": "internal", "groups": ["gold"]},
    "thirteen": {"valid_until": "2020-01-01T00:00:00Z"},
    "fourteen": {"valid_from": "2090-01-01T00:00:00Z", "groups": ["gold"]},
}
INSIDE: Final = {"seven", "eight", "nine", "ten", "eleven", "twelve"}
# What visitors of these groups find.
VISITORS: Final[dict[tuple[str, ...], set[str]]] = {
    (): {"seven"},
    ("gold",): {"seven", "eight", "ten"},
    ("silver",): {"seven", "nine", "ten"},
    ("gold", "silver"): {"seven", "eight", "nine", "ten"},
    ("Gold", "go", "gold,silver", "%"): {"seven"},
}


async def add_documents(librarian: Librarian) -> dict[str, str]:
    """Returns their ids."""
    files = {f"{hour}_txt": f"The shop opens on Sundays at {hour}." for hour in DOCUMENTS}
    added = await librarian.add(**files)
    ids = {document["name"].removesuffix(".txt"): document["id"] for document in added}
    for name, fields in DOCUMENTS.items():
        path = f"{librarian.path}/documents/{ids[name]}"
        answer = await librarian.client.http.patch(path, json=fields)
        assert answer.status_code == 200, answer.text
    answer = await librarian.client.put(f"{librarian.path}/retrieval", {"max_passages": 20})
    assert answer.status_code == 200, answer.text
    return ids


def hours_in(text: str) -> set[str]:
    """Returns which of the documents a text quotes."""
    return {hour for hour in DOCUMENTS if f"Sundays at {hour}." in text}
