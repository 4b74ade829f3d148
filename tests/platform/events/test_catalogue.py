"""The catalogue of event types, their schemas and their routes."""

import json
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from app.areas import AREAS
from app.domain.area import CATEGORIES, Event
from app.domain.platform.events.catalogue import category_of, schema_of
from tests.assertions import refused
from tests.world import Client, World

PATH = "/api/v1/event-types"
CATEGORY_NAMES = ["agent", "workflow", "form", "approval", "data_table", "system"]
# Every event type that the specification names.
SPECIFIED_TYPES = {
    *("agent.created", "agent.updated", "agent.deleted", "agent.published"),
    *("agent.chat.started", "agent.chat.message", "agent.chat.completed"),
    *("workflow.created", "workflow.updated", "workflow.deleted", "workflow.published"),
    *("workflow.execution.started", "workflow.execution.completed"),
    *("workflow.execution.failed", "workflow.execution.node_completed"),
    *("form.created", "form.updated", "form.deleted", "form.published"),
    *("form.submission.created", "form.submission.updated"),
    *("system.test", "system.webhook.disabled", "system.credential.invalid"),
    *("system.user.registered", "system.rate_limit.exceeded"),
}
# Of agents two more than those: a turn that failed, and the rating of an answer. Of workflows one
# more: the end by a cancellation.
TYPES_PER_CATEGORY = {"agent": 9, "workflow": 9, "form": 6, "approval": 4, "data_table": 7}

ID_PREFIXES = {
    "approval_id": "apr_",
    "workflow_id": "wfl_",
    "table_id": "tbl_",
    "row_id": "row_",
    "form_id": "frm_",
    "submission_id": "sbm_",
    "agent_id": "agt_",
    "user_id": "usr_",
    "tool_id": "tool_",
    "webhook_id": "whk_",
    "incoming_webhook_id": "inh_",
    "subscription_id": "sub_",
    "event_id": "evt_",
    "credential_id": "crd_",
    "conversation_id": "cnv_",
    "message_id": "msg_",
}


def _collect_refs(value: Any) -> list[str]:
    if isinstance(value, dict):
        refs = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return refs + [ref for item in value.values() for ref in _collect_refs(item)]
    if isinstance(value, list):
        return [ref for item in value for ref in _collect_refs(item)]
    return []


def test_every_specified_type_is_in_the_catalogue(subtests: pytest.Subtests) -> None:
    for name in sorted(SPECIFIED_TYPES):
        with subtests.test(name=name):
            assert name in AREAS.event_types
            assert AREAS.event_types[name].type == name


def test_a_category_has_the_specified_number_of_types(subtests: pytest.Subtests) -> None:
    for category, count in TYPES_PER_CATEGORY.items():
        with subtests.test(category=category, count=count):
            event_types = [name for name in AREAS.event_types if category_of(name) == category]
            assert len(event_types) == count


def test_there_are_six_categories() -> None:
    assert list(CATEGORIES) == CATEGORY_NAMES


def test_no_two_types_share_a_name() -> None:
    events = [event for event in _list_subclasses(Event) if event.__module__.startswith("app.")]
    assert len({event.type for event in events}) == len(events)


def test_every_type_that_an_area_defines_is_in_the_catalogue() -> None:
    events = {event for event in _list_subclasses(Event) if event.__module__.startswith("app.")}
    assert events == set(AREAS.event_types.values())


def _list_subclasses(event: type[Event]) -> list[type[Event]]:
    """Returns those that have a type: others hold the fields that several types share."""
    children = event.__subclasses__()
    types = [child for child in children if "type" in vars(child)]
    return [*types, *(deeper for child in children for deeper in _list_subclasses(child))]


def test_a_type_has_a_category_and_a_description(subtests: pytest.Subtests) -> None:
    for event in AREAS.event_types.values():
        with subtests.test(event.type):
            assert category_of(event.type) in CATEGORY_NAMES
            assert len(event.description()) > 10
            assert event.description() == event.description().strip()


def test_a_schema_is_a_valid_json_schema_of_an_object(subtests: pytest.Subtests) -> None:
    for event in AREAS.event_types.values():
        with subtests.test(event.type):
            schema = schema_of(event)
            assert jsonschema_rs.meta.is_valid(schema)
            assert schema["type"] == "object"
            assert schema["description"] == event.description()


def test_a_schema_contains_all_its_definitions(subtests: pytest.Subtests) -> None:
    for event in AREAS.event_types.values():
        with subtests.test(event.type):
            schema = json.loads(json.dumps(schema_of(event)))
            refs = _collect_refs(schema)
            assert all(ref.startswith("#/$defs/") for ref in refs)
            assert {ref.removeprefix("#/$defs/") for ref in refs} <= set(schema.get("$defs", {}))


def test_a_schema_names_every_field(subtests: pytest.Subtests) -> None:
    for event in AREAS.event_types.values():
        with subtests.test(event.type):
            fields = msgspec.structs.fields(event)
            schema = schema_of(event)
            assert set(schema["properties"]) == {field.encode_name for field in fields}
            required = {field.encode_name for field in fields if field.required}
            assert set(schema.get("required", [])) == required


def test_an_example_matches_its_schema(subtests: pytest.Subtests) -> None:
    for event in AREAS.event_types.values():
        with subtests.test(event.type):
            example = json.loads(json.dumps(event.example()))
            jsonschema_rs.validator_for(schema_of(event)).validate(example)
            assert msgspec.convert(example, event) is not None


def test_a_schema_refuses_other_data(subtests: pytest.Subtests) -> None:
    for event in AREAS.event_types.values():
        with subtests.test(event.type):
            validator = jsonschema_rs.validator_for(schema_of(event))
            assert not validator.is_valid([])
            assert not validator.is_valid("text")
            for name in schema_of(event).get("required", []):
                assert not validator.is_valid({**event.example(), name: {"no": ["such"]}}) or (
                    _accepts_any_data(schema_of(event)["properties"][name])
                )


def _accepts_any_data(schema: dict[str, Any]) -> bool:
    """True for fields without a fixed type, such as an incoming payload."""
    return jsonschema_rs.is_valid(schema, {"no": ["such"]})


def test_an_example_holds_ids_of_the_right_kind(subtests: pytest.Subtests) -> None:
    for event in AREAS.event_types.values():
        with subtests.test(event.type):
            example = event.example()
            for name in ID_PREFIXES.keys() & example.keys():
                assert example[name] is None or str(example[name]).startswith(ID_PREFIXES[name])


# Over HTTP


async def test_the_list_is_the_catalogue_sorted_by_name(developer: Client) -> None:
    answer = await developer.get(PATH)
    assert answer.status_code == 200
    assert set(answer.json()) == {"event_types"}
    event_types = answer.json()["event_types"]
    assert [event_type["name"] for event_type in event_types] == sorted(AREAS.event_types)
    assert {frozenset(event_type) for event_type in event_types} == {
        frozenset({"name", "category", "description", "schema"})
    }


async def test_a_listed_type_is_described_as_in_the_catalogue(developer: Client) -> None:
    event_types = (await developer.get(PATH)).json()["event_types"]
    for event_type in event_types:
        event = AREAS.event_types[event_type["name"]]
        assert event_type["category"] == category_of(event.type)
        assert event_type["description"] == event.description()
        assert event_type["schema"] == schema_of(event)


async def test_the_list_can_be_filtered_by_category(
    world: World, subtests: pytest.Subtests
) -> None:
    for category in CATEGORY_NAMES:
        with subtests.test(category=category):
            developer = await world.user()
            answer = await developer.get(PATH, params={"category": category})
            names = [event_type["name"] for event_type in answer.json()["event_types"]]
            assert names == sorted(
                name for name in AREAS.event_types if name.startswith(f"{category}.")
            )


async def test_an_unknown_category_is_refused(world: World, subtests: pytest.Subtests) -> None:
    for category in ("agents", "", "AGENT"):
        with subtests.test(category=category):
            developer = await world.user()
            answer = await developer.get(PATH, params={"category": category})
            assert set(refused(answer, 422, "validation_error")["details"]) == {"category"}


async def test_categories_have_the_count_of_their_types(developer: Client) -> None:
    answer = await developer.get(f"{PATH}/categories")
    assert answer.status_code == 200
    assert set(answer.json()) == {"categories"}
    categories = answer.json()["categories"]
    assert {frozenset(category) for category in categories} == {
        frozenset({"name", "description", "count"})
    }
    assert [category["name"] for category in categories] == CATEGORY_NAMES
    assert all(category["description"] for category in categories)
    counts = {category["name"]: category["count"] for category in categories}
    assert counts == {
        name: sum(category_of(other) == name for other in AREAS.event_types)
        for name in CATEGORY_NAMES
    }


async def test_one_type_is_shown_in_full(developer: Client, subtests: pytest.Subtests) -> None:
    for event in AREAS.event_types.values():
        with subtests.test(event.type):
            answer = await developer.get(f"{PATH}/{event.type}")
            assert answer.status_code == 200
            assert answer.json() == {
                "name": event.type,
                "category": category_of(event.type),
                "description": event.description(),
                "schema": schema_of(event),
                "example": event.example(),
            }


async def test_a_type_that_does_not_exist_is_404(world: World, subtests: pytest.Subtests) -> None:
    for name in (
        "agent.nothing",
        "agent",
        "AGENT.CREATED",
        "agent.created%20",
        "x" * 5000,
        "%C3%BC",
    ):
        with subtests.test(name=name):
            developer = await world.user()
            refused(await developer.get(f"{PATH}/{name}"), 404, "event_type_not_found")


async def test_a_role_without_permission_gets_403(world: World, subtests: pytest.Subtests) -> None:
    for path in ("", "/categories", "/agent.created", "/no.such"):
        for role in ("agent_user", "viewer"):
            with subtests.test(path=path, role=role):
                error = refused(await (await world.user(role)).get(PATH + path), 403, "forbidden")
                assert error["details"] == {"required": "events:read", "your_role": role}


async def test_a_role_with_permission_sees_the_types(
    world: World, subtests: pytest.Subtests
) -> None:
    for path in ("", "/categories", "/agent.created"):
        for role in ("super_admin", "tenant_admin", "agent_developer"):
            with subtests.test(path=path, role=role):
                assert (await (await world.user(role)).get(PATH + path)).status_code == 200


async def test_an_anonymous_caller_gets_401(anonymous: Client, subtests: pytest.Subtests) -> None:
    for path in ("", "/categories", "/agent.created"):
        with subtests.test(path=path):
            refused(await anonymous.get(PATH + path), 401, "unauthorized")
