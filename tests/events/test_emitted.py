"""Every type of the catalogue is really emitted, with the data that its schema promises."""

from typing import Any

import jsonschema_rs
import pytest

from app.domain.events.catalogue import CATALOGUE, category_of, schema_of
from app.parts import Parts
from tests.events.deeds import DEEDS
from tests.events.deeds_of_people import Deed
from tests.events.scene import Scene
from tests.events.watching import Row, log_of
from tests.model_server import ModelServer
from tests.webhooks.receiver import Receiver
from tests.world import PASSWORD, World
from workers.main import WorkerProcess

# The areas that emit these do not exist yet. Whoever builds one takes its types out of here and
# says in DEEDS how they are brought about.
TO_COME = {
    name
    for name in CATALOGUE
    if category_of(name) in {"workflow", "form", "approval", "data_table"}
}
SECRETS = [PASSWORD, "Battery9Staple", "planted", "whsec_", "sk-0123456789abcdef", "emb_"]
ENTRY = {"id", "type", "correlation_id", "parent_id", "data", "created_at"}

each = pytest.mark.parametrize(("event_type", "deed"), DEEDS.items(), ids=list(DEEDS))


@pytest.fixture
async def scene(world: World, models: ModelServer, receiver: Receiver) -> Scene:
    admin = await world.user("tenant_admin")
    return Scene(world, world.parts, models, receiver, admin)


def _problems(row: Row) -> list[str]:
    """In what an entry is not as the catalogue has it."""
    schema = schema_of(CATALOGUE[row["type"]])
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
    scene: Scene, courier: WorkerProcess, parts: Parts, event_type: str, deed: Deed
) -> None:
    await deed(scene)
    log = await log_of(parts, scene.tenant_id)
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


def test_every_type_is_either_brought_about_here_or_still_to_come() -> None:
    assert not DEEDS.keys() & TO_COME
    assert DEEDS.keys() | TO_COME == CATALOGUE.keys()
