"""The size of answers to bodies with very many problems."""

import pytest

from tests.agents.tools.tool_configs import tool_body
from tests.assertions import refused
from tests.world import World

MAX_ANSWER_BYTES = 16 * 1024


_CASES: list[tuple[str, dict[str, object]]] = [
    (
        "/api/v1/webhooks",
        {
            "url": "https://hooks.example.com",
            "events": ["system.test"],
            "headers": {f"header-{number}": number for number in range(40_000)},
        },
    ),
    (
        "/v1/tools",
        tool_body(
            "rest_api",
            {
                "base_url": "https://api.example.com",
                "endpoints": {f"e{number}": {} for number in range(80_000)},
            },
        ),
    ),
    (
        "/v1/credentials",
        {"name": "C", "type": "api_key", "secrets": {f"k{n}": n for n in range(50_000)}},
    ),
    ("/api/v1/webhooks", {"url": "https://a.example", "events": ["x"] * 150_000}),
]


async def test_an_answer_is_short_however_many_problems_a_body_has(
    world: World, subtests: pytest.Subtests
) -> None:
    for path, body in _CASES:
        admin = await world.user("tenant_admin")
        with subtests.test(path=path, body=body):
            answer = await admin.post(path, body)
            refused(answer, 422, "validation_error")
            assert len(answer.content) <= MAX_ANSWER_BYTES
