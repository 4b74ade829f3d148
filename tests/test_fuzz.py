"""Generated requests to every operation: no 5xx, and responses as documented."""

from typing import Any

import httpx
import pytest

from tests.lengths import rounds
from tests.server import Server
from tests.world import World

# In the long run in parts, so that several processes share them; each of them starts anew.
_PARTS = rounds(1, 4)
# Strategies take longer to build than requests take: the short run has every third operation.
_STEP = rounds(3, 1)
# Most of what can go wrong is in bodies.
_EXAMPLES_WITH_BODY = rounds(2, 40)
_EXAMPLES_WITHOUT_BODY = rounds(1, 10)
_MAX_PATTERN_LENGTH = 1_000

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("restored_grants")]


@pytest.fixture(scope="module")
def document(server: Server) -> Any:
    """Without the stream that has no end."""
    import schemathesis  # noqa: PLC0415  # takes seconds, in every process that imports this file

    content = httpx.get(f"{server.url}/openapi.json").json()
    for schema in content["components"]["schemas"].values():
        _drop_slow_patterns(schema.get("properties", {}))
    document = schemathesis.openapi.from_dict(content)
    document.config.update(base_url=server.url)
    return document.exclude(path="/api/v1/notifications/stream").exclude(
        path="/api/v1/event-log/stream"
    )


def _drop_slow_patterns(properties: dict[str, Any]) -> None:
    """Schemathesis adds the limits of the length to a pattern, compiles it for seconds, and drops
    it because it is too large.
    """
    for schema in properties.values():
        if schema.get("maxLength", 0) > _MAX_PATTERN_LENGTH:
            schema.pop("pattern", None)


@pytest.fixture(scope="module")
async def tokens(world: World, document: Any) -> list[str]:
    """One token per operation, because some operations end their session."""
    operations = list(document.get_all_operations())
    assert len(operations) > 10
    return [(await world.user("super_admin")).token or "" for _ in operations]


@pytest.mark.parametrize("part", range(_PARTS))
def test_no_operation_breaks(document: Any, tokens: list[str], part: int) -> None:
    operations = list(zip(document.get_all_operations(), tokens, strict=True))
    checks = _list_checks()
    for result, token in operations[part :: _PARTS * _STEP]:
        _fuzz(result.ok(), {"authorization": f"Bearer {token}"}, checks)


def _list_checks() -> list[Any]:
    from schemathesis.checks import not_a_server_error  # noqa: PLC0415  # as above
    from schemathesis.specs.openapi import checks  # noqa: PLC0415  # as above

    return [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]


def _fuzz(operation: Any, headers: dict[str, str], checks: list[Any]) -> None:
    from hypothesis import HealthCheck, Phase, given, settings  # noqa: PLC0415  # as above

    examples = _EXAMPLES_WITH_BODY if len(operation.body) else _EXAMPLES_WITHOUT_BODY

    @settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
    )
    @given(case=operation.as_strategy())
    def send(case: Any) -> None:
        case.call_and_validate(headers=headers, checks=checks)

    send()
