"""Generated requests to every operation: no 5xx, and responses as documented."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.lengths import rounds
from tests.server import Server
from tests.world import World

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]

_PARTS = 4
# Most of what can go wrong is in bodies.
_EXAMPLES_WITH_BODY = rounds(2, 40)
_EXAMPLES_WITHOUT_BODY = rounds(1, 10)

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("restored_grants")]


@pytest.fixture(scope="module")
def document(server: Server) -> Any:
    """Without the stream that has no end."""
    document = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    return document.exclude(path="/api/v1/notifications/stream")


@pytest.fixture(scope="module")
async def tokens(world: World, document: Any) -> list[str]:
    """One token per operation, because some operations end their session."""
    operations = list(document.get_all_operations())
    assert len(operations) > 10
    return [(await world.user("super_admin")).token or "" for _ in operations]


# In parts, so that several processes share them.
@pytest.mark.parametrize("part", range(_PARTS))
def test_no_operation_breaks(document: Any, tokens: list[str], part: int) -> None:
    operations = list(zip(document.get_all_operations(), tokens, strict=True))
    for result, token in operations[part::_PARTS]:
        _fuzz(result.ok(), {"authorization": f"Bearer {token}"})


def _fuzz(operation: Any, headers: dict[str, str]) -> None:
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
        case.call_and_validate(headers=headers, checks=CHECKS)

    send()
