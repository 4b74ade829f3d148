"""The ids and paths of operations in /openapi.json."""

import re
from itertools import combinations

import pytest

from tests.openapi.document import Document, list_operations

_LONGEST_ID = 32
# Paths that the interface is bound to, although others match the same URLs: the id of a form or
# channel is never `slug` or `active`.
_BOUND_PATHS = {
    "/api/v1/forms/slug/{slug}",
    "/api/v1/notification-channels/active/{channel_type}",
}


def test_no_two_operations_have_the_same_id(document: Document) -> None:
    ids = [operation["operationId"] for _, _, operation in list_operations(document)]
    assert len(ids) == len(set(ids))


def test_ids_of_operations_are_names_of_functions(document: Document) -> None:
    """Those that generators of clients give to their functions."""
    ids = [operation["operationId"] for _, _, operation in list_operations(document)]
    bad = [name for name in ids if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name)]
    assert bad + [name for name in ids if len(name) > _LONGEST_ID] == []


def test_ids_of_operations_stay_the_same(document: Document, subtests: pytest.Subtests) -> None:
    ids = {name: operation["operationId"] for name, _, operation in list_operations(document)}
    for name, operation_id in [
        ("POST /api/v1/agents/{agent_id}/chat", "chat"),
        ("POST /api/v1/public/agents/{agent_id}/chat", "chat_as_visitor"),
        ("GET /api/v1/agents", "list_agents"),
        ("GET /api/v1/embed/api-keys", "list_embed_keys"),
        ("GET /api/v1/api-keys", "list_provider_keys"),
        ("POST /v1/chat/completions", "create_completion"),
    ]:
        with subtests.test(name=name):
            assert ids[name] == operation_id


def test_no_url_matches_two_paths(document: Document) -> None:
    """Unless one of the paths is more specific in every part, and so the one that is meant."""
    paths = [path for path in document["paths"] if path not in _BOUND_PATHS]
    assert len(paths) == len(document["paths"]) - len(_BOUND_PATHS)
    assert [pair for pair in combinations(paths, 2) if _are_ambiguous(*pair)] == []


def test_ambiguous_paths_are_found(subtests: pytest.Subtests) -> None:
    for first, second, are_ambiguous in [
        ("/users/{user_id}/role", "/users/invitations/{invitation_id}", True),
        ("/users/{user_id}", "/users/invitations", False),
        ("/users/{user_id}/role", "/users/{user_id}/status", False),
        ("/a/{one}", "/a/{two}", True),
        ("/a/{one}", "/a/{one}/b", False),
    ]:
        with subtests.test(first=first, second=second):
            assert _are_ambiguous(first, second) is are_ambiguous


def _are_ambiguous(first: str, second: str) -> bool:
    parts = list(zip(first.split("/"), second.split("/"), strict=False))
    if first.count("/") != second.count("/"):
        return False
    if any(a != b and "{" not in a + b for a, b in parts):
        return False
    first_is_specific = all("{" not in a or "{" in b for a, b in parts)
    second_is_specific = all("{" not in b or "{" in a for a, b in parts)
    return first_is_specific is second_is_specific
