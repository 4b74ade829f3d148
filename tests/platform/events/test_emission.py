"""Every event type of the catalogue is emitted, with data that matches its schema."""

from functools import cache
from typing import Any

import jsonschema_rs
import pytest

from app.areas import AREAS
from app.domain.platform.events.catalogue import schema_of
from tests.database import Row
from tests.messaging.deliveries.receiver import Receiver
from tests.model_server import ModelServer
from tests.platform.events.database import load_events
from tests.platform.events.emitter_context import EmitterContext
from tests.platform.events.emitters import EMITTERS
from tests.platform.events.log_entries import ENTRY_KEYS
from tests.world import PASSWORD, World
from workers.main import WorkerProcess

SECRETS = [PASSWORD, "Battery9Staple", "planted", "whsec_", "sk-0123456789abcdef", "emb_"]


@cache
def _compile(event_type: str) -> tuple[dict[str, Any], Any]:
    """Returns the schema of a type and its validator."""
    schema = schema_of(AREAS.event_types[event_type])
    return schema, jsonschema_rs.validator_for(schema)


def _find_problems(row: Row) -> list[str]:
    """Returns how an event differs from its type's schema."""
    schema, validator = _compile(row["type"])
    errors = [error.message for error in validator.iter_errors(row["data"])]
    missing = set(schema.get("required", [])) - set(row["data"])
    unknown = set(row["data"]) - set(schema["properties"])
    return [*errors, *(f"unknown {name}" for name in unknown), *(f"no {name}" for name in missing)]


def _collect_texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _collect_texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _collect_texts(item)]
    return [value] if isinstance(value, str) else []


async def test_an_emitted_event_matches_its_schema(
    world: World,
    models: ModelServer,
    receiver: Receiver,
    courier: WorkerProcess,
    subtests: pytest.Subtests,
) -> None:
    for event_type, emit in EMITTERS.items():
        with subtests.test(event_type=event_type):
            receiver.reset()
            admin = await world.user("tenant_admin")
            context = EmitterContext(world, world.services, models, receiver, admin)
            await emit(context)
            await _check_log(context, event_type)


async def _check_log(context: EmitterContext, event_type: str) -> None:
    """The log of the tenant has an event of this type, and all its events match their schemas."""
    log = await load_events(context.services, context.tenant_id)
    assert event_type in {row["type"] for row in log}
    assert {row["type"]: problems for row in log if (problems := _find_problems(row))} == {}
    assert {row["type"] for row in log if row["test"]} <= {"system.test"}
    texts = "\n".join(text for row in log for text in _collect_texts(row["data"]))
    assert [secret for secret in SECRETS if secret in texts] == []
    expected = [row["data"] for row in log if row["type"] == event_type]
    assert await _list_data(context, event_type) == expected


async def _list_data(context: EmitterContext, event_type: str) -> list[Any]:
    """Returns the data that the event log shows, by id.

    Requests as a super_admin, because the tenant may be deleted or over its rate limit.
    """
    super_admin = await context.world.user("super_admin")
    headers = {"X-Tenant-ID": context.tenant_id}
    params = {"event_type": event_type, "per_page": 100}
    answer = await super_admin.get("/api/v1/event-log", params=params, headers=headers)
    assert answer.status_code == 200, answer.text
    entries = answer.json()["data"]
    assert all(set(entry) - {"test"} == ENTRY_KEYS for entry in entries)
    return [entry["data"] for entry in sorted(entries, key=lambda entry: str(entry["id"]))]


def test_every_type_has_an_emitter() -> None:
    assert EMITTERS.keys() == AREAS.event_types.keys()
