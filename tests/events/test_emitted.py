"""Every type of the catalogue is really emitted, with the data that its schema promises."""

from typing import Any

import jsonschema_rs
import pytest

from app.areas import AREAS
from app.domain.events.catalogue import schema_of
from app.services import Services
from tests.events.factories import DEEDS
from tests.events.people_factories import Deed
from tests.events.scene import Scene
from tests.events.watching import Row, log_of
from tests.model_server import ModelServer
from tests.webhooks.receiver import Receiver
from tests.world import PASSWORD, World
from workers.main import WorkerProcess

SECRETS = [PASSWORD, "Battery9Staple", "planted", "whsec_", "sk-0123456789abcdef", "emb_"]
ENTRY = {"id", "type", "correlation_id", "parent_id", "data", "created_at"}

each = pytest.mark.parametrize(("event_type", "deed"), DEEDS.items(), ids=list(DEEDS))


@pytest.fixture
async def scene(world: World, models: ModelServer, receiver: Receiver) -> Scene:
    admin = await world.user("tenant_admin")
    return Scene(world, world.services, models, receiver, admin)


def _problems(row: Row) -> list[str]:
    """In what an entry is not as the catalogue has it."""
    schema = schema_of(AREAS.event_types[row["type"]])
    validator = jsonschema_rs.validator_for(schema)
    found = [error.message for error in validator.iter_errors(row["data"])]
    missing = set(schema.get("required", [])) - set(row["data"])
    unknown = set(row["data"]) - set(schema["properties"])
    return [*found, *(f"unknown {name}" for name in unknown), *(f"no {name}" for name in missing)]


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


@each
async def test_it_is_emitted_and_is_what_its_schema_says(
    scene: Scene, courier: WorkerProcess, services: Services, event_type: str, deed: Deed
) -> None:
    await deed(scene)
    log = await log_of(services, scene.tenant_id)
    assert event_type in {row["type"] for row in log}
    assert {row["type"]: problems for row in log if (problems := _problems(row))} == {}
    assert {row["type"] for row in log if row["test"]} <= {"system.test"}
    told = "\n".join(text for row in log for text in _texts(row["data"]))
    assert [secret for secret in SECRETS if secret in told] == []
    wanted = [row["data"] for row in log if row["type"] == event_type]
    assert await _shown(scene, event_type) == wanted


async def _shown(scene: Scene, event_type: str) -> list[Any]:
    """The data as the log shows it, by id; also of a tenant that may ask no more."""
    chief, here = await scene.world.user("super_admin"), {"X-Tenant-ID": scene.tenant_id}
    params = {"event_type": event_type, "per_page": 100}
    answer = await chief.get("/api/v1/event-log", params=params, headers=here)
    assert answer.status_code == 200, answer.text
    entries = answer.json()["data"]
    assert all(set(entry) - {"test"} == ENTRY for entry in entries)
    return [entry["data"] for entry in sorted(entries, key=lambda entry: str(entry["id"]))]


def test_every_type_is_brought_about_here() -> None:
    assert DEEDS.keys() == AREAS.event_types.keys()
