"""What all routes have in common: errors, headers, ids, bodies, transactions."""

import pytest

from tests.world import Client, World

LIMIT_HEADERS = {
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-window",
    "ratelimit",
    "ratelimit-policy",
}


async def test_a_failed_commit_is_500(anonymous: Client) -> None:
    answer = await anonymous.post("/test/failing-commit")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal_error"


async def test_every_error_has_the_envelope_and_the_common_headers(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, str, int, str]] = [
        ("GET", "/nothing/here", 404, "not_found"),
        ("PATCH", "/auth/login", 405, "method_not_allowed"),
        ("GET", "/auth/me", 401, "unauthorized"),
        ("GET", "/test/crash", 500, "internal_error"),
        ("GET", "/api/v1/tenants/%00", 422, "validation_error"),
    ]
    for method, path, status, code in cases:
        anonymous = world.anonymous()
        with subtests.test(method=method, path=path):
            answer = await anonymous(method, path)
            assert answer.status_code == status
            assert answer.json()["error"]["code"] == code
            assert LIMIT_HEADERS | {"x-request-id", "x-correlation-id"} <= set(answer.headers)
            assert answer.headers["x-content-type-options"] == "nosniff"


async def test_an_unexpected_error_shows_the_request_id_and_no_details(anonymous: Client) -> None:
    answer = await anonymous.get("/test/crash", headers={"x-request-id": "my-request-7"})
    assert "my-request-7" in answer.text
    assert "hunter2" not in answer.text
    assert "Traceback" not in answer.text


async def test_valid_ids_of_the_caller_are_returned(anonymous: Client) -> None:
    headers = {"x-request-id": "req-1", "x-correlation-id": "order:42"}
    answer = await anonymous.get("/health/live", headers=headers)
    assert answer.headers["x-request-id"] == "req-1"
    assert answer.headers["x-correlation-id"] == "order:42"


async def test_ids_that_are_invalid_in_a_log_line_or_a_path_are_replaced(
    world: World, subtests: pytest.Subtests
) -> None:
    cases: list[str] = ["a b\tc", "a/b", "", "x" * 129, "é"]
    for correlation_id in cases:
        anonymous = world.anonymous()
        with subtests.test(correlation_id=correlation_id):
            headers = {"x-correlation-id": correlation_id.encode("latin-1")}
            answer = await anonymous.get("/health/live", headers=headers)
            assert answer.headers["x-correlation-id"].startswith("cor_")


_CASES: list[tuple[bytes, dict[str, str]]] = [
    (b"{", {"body": "is not valid JSON"}),
    (b"\xff\xfe", {"body": "is not valid JSON"}),
    (b"[1]", {"body": "must be a JSON object"}),
    (b"{}", {"name": "is required", "nested": "is required"}),
    (
        b'{"name": 5, "nested": {"count": "3"}, "age": "7"}',
        {
            "name": "must be a string",
            "nested.count": "must be a whole number",
            "age": "must be a whole number",
        },
    ),
    (
        b'{"name": "a\\u0000b", "nested": {"count": 1}}',
        {"body": "must not contain NUL characters"},
    ),
]


async def test_all_invalid_fields_of_a_body_are_reported(
    anonymous: Client, subtests: pytest.Subtests
) -> None:
    for body, details in _CASES:
        with subtests.test(body=body, details=details):
            answer = await anonymous("POST", "/test/form", content=body)
            assert answer.status_code == 422
            assert answer.json()["error"]["code"] == "validation_error"
            assert answer.json()["error"]["details"] == details


async def test_a_missing_body_is_a_validation_error(anonymous: Client) -> None:
    answer = await anonymous("POST", "/test/form")
    assert answer.status_code == 422
    assert "body" in answer.json()["error"]["details"]


async def test_unknown_fields_are_refused(anonymous: Client) -> None:
    body = {"name": "a", "nested": {"counts": 1, "count": 1}, "role": "super_admin"}
    answer = await anonymous.post("/test/form", body)
    assert answer.status_code == 422
    assert answer.json()["error"]["details"] == {
        "nested.counts": "is not a known field; did you mean count?",
        "role": "is not a known field; use one of: name, nested, age",
    }


async def test_deep_nesting_is_refused(anonymous: Client) -> None:
    answer = await anonymous("POST", "/test/form", content=b"[" * 100_000)
    assert answer.status_code == 422


async def test_a_body_over_the_limit_is_413(anonymous: Client) -> None:
    answer = await anonymous("POST", "/test/form", content=b"x" * (1024 * 1024 + 1))
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "payload_too_large"


async def test_other_origins_are_not_allowed(anonymous: Client) -> None:
    answer = await anonymous(
        "OPTIONS",
        "/auth/login",
        headers={"origin": "https://evil.example", "access-control-request-method": "POST"},
    )
    assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_a_nul_deep_inside_an_unknown_field_causes_no_server_error(
    world: World, subtests: pytest.Subtests
) -> None:
    for depth in (100, 600, 900, 5000):
        anonymous = world.anonymous()
        with subtests.test(depth=depth):
            deep = b"[" * depth + b'"\\u0000"' + b"]" * depth
            body = b'{"name": "a", "nested": {"count": 1}, "x": ' + deep + b"}"
            answer = await anonymous("POST", "/test/form", content=body)
            assert answer.status_code in {201, 422}


async def test_a_missing_body_is_named_in_the_details(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for method, path in (("POST", "/api/v1/agents"), ("POST", "/auth/login")):
        with subtests.test(method=method, path=path):
            answer = await developer(method, path)
            assert answer.status_code == 422
            assert answer.json()["error"]["details"] == {"body": "is required"}


async def test_a_wrong_value_of_a_parameter_is_answered_with_the_right_ones(
    developer: Client,
) -> None:
    for params, details in (
        ({"status": "bad"}, {"status": "must be one of draft, published, archived"}),
        ({"page": "x"}, {"page": "must be a whole number"}),
    ):
        answer = await developer.get("/api/v1/agents", params=params)
        assert answer.status_code == 422
        assert answer.json()["error"]["details"] == details
