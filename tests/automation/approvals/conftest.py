from collections.abc import Iterator

import pytest

from app.areas import AREAS
from app.domain.area import Area, Areas, FinishedCall
from app.domain.platform.events.service import emit_dead
from app.services import Services
from tests.automation.approvals.factories import CALLER_PREFIX
from workers.runner import Runner


@pytest.fixture
def calls(services: Services) -> Iterator[list[FinishedCall]]:
    """The ends that another area is told of."""
    finished_calls: list[FinishedCall] = []

    async def on_call_finished(call: FinishedCall) -> None:
        finished_calls.append(call)

    listener = Area(name="listener", on_call_finished=(CALLER_PREFIX, on_call_finished))
    services.add(Areas([*AREAS, listener]))
    yield finished_calls
    services.add(AREAS)


@pytest.fixture
def runner(services: Services) -> Runner:
    return Runner(services, on_any_dead=emit_dead)
