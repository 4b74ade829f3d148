"""Errors, headers, bodies, transactions, idempotency: what holds on every route."""

import asyncio
from typing import cast

import pytest
from sqlalchemy.pool import QueuePool

from app.kit.ids import new_id
from app.services import Services
from db.session import ALL_TENANTS
from tests.world import PASSWORD, Client, World

LIMIT_HEADERS = {
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-window",
    "ratelimit",
    "ratelimit-policy",
}


async def test_a_failed_commit_is_a_500_and_never_a_201(anonymous: Client) -> None:
    answer = await anonymous.post("/test/failing-commit")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal_error"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing/here", 404, "not_found"),
        ("PATCH", "/auth/login", 405, "method_not_allowed"),
        ("GET", "/auth/me", 401, "unauthorized"),
        ("GET", "/test/crash", 500, "internal_error"),
        ("GET", "/api/v1/tenants/%00", 422, "validation_error"),
    ],
)
async def test_every_error_is_the_envelope_with_all_headers(
    anonymous: Client, method: str, path: str, status: int, code: str
) -> None:
    answer = await anonymous(method, path)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
    assert LIMIT_HEADERS | {"x-request-id", "x-correlation-id"} <= set(answer.headers)
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_crash_tells_the_request_id_and_nothing_else(anonymous: Client) -> None:
    answer = await anonymous.get("/test/crash", headers={"x-request-id": "my-request-7"})
    assert "my-request-7" in answer.text
    assert "hunter2" not in answer.text
    assert "Traceback" not in answer.text


async def test_ids_of_the_caller_are_kept_when_they_are_plain(anonymous: Client) -> None:
    given = {"x-request-id": "req-1", "x-correlation-id": "order:42"}
    answer = await anonymous.get("/health/live", headers=given)
    assert answer.headers["x-request-id"] == "req-1"
    assert answer.headers["x-correlation-id"] == "order:42"


@pytest.mark.parametrize("given", ["a b\tc", "a/b", "", "x" * 129, "é"])
async def test_ids_unfit_for_a_log_line_or_a_path_are_replaced(
    anonymous: Client, given: str
) -> None:
    headers = {"x-correlation-id": given.encode("latin-1")}
    answer = await anonymous.get("/health/live", headers=headers)
    assert answer.headers["x-correlation-id"].startswith("cor_")


@pytest.mark.parametrize(
    ("body", "details"),
    [
        (b"{", {"body": "is not valid JSON"}),
        (b"\xff\xfe", {"body": "is not valid JSON"}),
        (b"[1]", {"body": "must be a JSON object"}),
        (b"{}", {"name": "is required", "nested": "is required"}),
        (
            b'{"name": 5, "nested": {"count": "3"}, "age": "7"}',
            {
                "name": "Expected `str`, got `int`",
                "nested.count": "Expected `int`, got `str`",
                "age": "Expected `int`, got `str`",
            },
        ),
        (
            b'{"name": "a\\u0000b", "nested": {"count": 1}}',
            {"body": "must not contain NUL characters"},
        ),
    ],
)
async def test_a_bad_body_names_every_wrong_field(
    anonymous: Client, body: bytes, details: dict[str, str]
) -> None:
    answer = await anonymous("POST", "/test/form", content=body)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "validation_error"
    assert answer.json()["error"]["details"] == details


async def test_a_missing_body_is_a_validation_error(anonymous: Client) -> None:
    answer = await anonymous("POST", "/test/form")
    assert answer.status_code == 422
    assert "body" in answer.json()["error"]["details"]


async def test_unknown_fields_are_ignored(anonymous: Client) -> None:
    body = {"name": "a", "nested": {"count": 1}, "role": "super_admin"}
    answer = await anonymous.post("/test/form", body)
    assert answer.status_code == 201
    assert answer.json() == {"name": "a", "nested": {"count": 1}, "age": 0}


async def test_deep_nesting_is_refused_and_not_a_crash(anonymous: Client) -> None:
    answer = await anonymous("POST", "/test/form", content=b"[" * 100_000)
    assert answer.status_code == 422


async def test_a_body_over_the_limit_is_413(anonymous: Client) -> None:
    answer = await anonymous("POST", "/test/form", content=b"x" * (1024 * 1024 + 1))
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "payload_too_large"


async def test_no_other_origin_is_let_in(anonymous: Client) -> None:
    answer = await anonymous(
        "OPTIONS",
        "/auth/login",
        headers={"origin": "https://evil.example", "access-control-request-method": "POST"},
    )
    assert not [name for name in answer.headers if name.startswith("access-control-")]


# Idempotency-Key


async def _rows(services: Services, tenant_id: str) -> int:
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        raw = await tx.raw()
        count: int = await raw.fetchval(
            "SELECT count(*) FROM event_log WHERE tenant_id = $1 AND type = 'test.counted'",
            tenant_id,
        )
    return count


async def test_the_same_key_and_body_replay_the_first_answer(
    developer: Client, services: Services
) -> None:
    headers = {"idempotency-key": "order-1"}
    first = await developer.post("/test/counted", {"a": 1}, headers=headers)
    second = await developer.post("/test/counted", {"a": 1}, headers=headers)
    assert first.status_code == second.status_code == 201
    assert first.content == second.content
    assert second.headers["idempotent-replayed"] == "true"
    assert await _rows(services, developer.tenant_id) == 1


async def test_the_same_key_with_another_body_is_refused(developer: Client) -> None:
    headers = {"idempotency-key": "order-2"}
    await developer.post("/test/counted", {"a": 1}, headers=headers)
    answer = await developer.post("/test/counted", {"a": 2}, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "idempotency_mismatch"


async def test_a_key_belongs_to_its_user(world: World, developer: Client) -> None:
    other = await world.user("agent_developer", developer.tenant_id)
    headers = {"idempotency-key": "shared"}
    first = await developer.post("/test/counted", {}, headers=headers)
    second = await other.post("/test/counted", {}, headers=headers)
    assert first.json() != second.json()


async def test_parallel_requests_with_one_key_have_one_effect(
    developer: Client, services: Services
) -> None:
    headers = {"idempotency-key": "race"}
    answers = await asyncio.gather(
        *(developer.post("/test/counted", {"n": 1}, headers=headers) for _ in range(8))
    )
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert await _rows(services, developer.tenant_id) == 1


async def test_a_failed_request_does_not_keep_its_key(
    developer: Client, services: Services
) -> None:
    headers = {"idempotency-key": "again"}
    failed = await developer.post("/test/counted", {"fail": True}, headers=headers)
    assert failed.status_code == 500
    assert await _rows(services, developer.tenant_id) == 0
    retried = await developer.post("/test/counted", {"fail": False}, headers=headers)
    assert retried.status_code == 201


async def test_stored_answers_are_sealed(developer: Client, services: Services) -> None:
    headers = {"idempotency-key": "sealed"}
    answer = await developer.post("/test/counted", {}, headers=headers)
    async with services.db.tx(ALL_TENANTS, autocommit=True) as tx:
        bodies = await (await tx.raw()).fetch(
            "SELECT body FROM idempotency_keys WHERE body IS NOT NULL"
        )
    assert bodies
    assert all(answer.json()["id"].encode() not in row["body"] for row in bodies)


async def test_a_key_belongs_to_the_tenant_that_super_admin_acts_in(
    super_admin: Client, world: World
) -> None:
    body = {"email": f"{new_id('x')}@example.com", "role": "viewer"}
    made = []
    for tenant in (await world.tenant(), await world.tenant()):
        headers = {"idempotency-key": "one", "x-tenant-id": tenant}
        answer = await super_admin.post("/users/invite", body, headers=headers)
        made.append((answer.status_code, answer.json()["tenant_id"] == tenant))
    assert made == [(201, True), (201, True)]


async def test_a_failed_request_leaves_nothing_to_the_next_in_its_context(
    developer: Client, services: Services
) -> None:
    headers = {"idempotency-key": "fails"}
    assert (
        await developer.post("/test/counted", {"fail": True}, headers=headers)
    ).status_code == 500
    assert (await developer.get("/auth/me")).status_code == 200
    pool = cast("QueuePool", services.db.engine.sync_engine.pool)
    assert pool.checkedout() == 0


@pytest.mark.parametrize("depth", [100, 600, 900, 5000])
async def test_nul_deep_inside_an_unknown_field_is_no_crash(anonymous: Client, depth: int) -> None:
    deep = b"[" * depth + b'"\\u0000"' + b"]" * depth
    body = b'{"name": "a", "nested": {"count": 1}, "x": ' + deep + b"}"
    answer = await anonymous("POST", "/test/form", content=body)
    assert answer.status_code in {201, 422}


async def test_signing_in_while_signed_in_elsewhere_works(
    super_admin: Client, developer: Client, anonymous: Client
) -> None:
    for caller in (super_admin, developer, anonymous):
        answer = await caller.post("/auth/login", {"email": developer.email, "password": PASSWORD})
        assert answer.status_code == 200
        assert answer.json()["user"]["id"] == developer.user_id


@pytest.mark.parametrize(("method", "path"), [("POST", "/api/v1/agents"), ("POST", "/auth/login")])
async def test_a_missing_body_is_told_as_such(developer: Client, method: str, path: str) -> None:
    answer = await developer(method, path)
    assert answer.status_code == 422
    assert answer.json()["error"]["details"] == {"body": "is required"}
