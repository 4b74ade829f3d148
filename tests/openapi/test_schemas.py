"""The schemas of /openapi.json: their names, and what they say about values."""

import re
from collections.abc import Iterator
from datetime import date, datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest
from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.params import QueryParameter
from msgspec import UNSET, Meta, UnsetType

from app.http.openapi_schemas import BINARY, SchemaBuilder
from app.http.route_options import list_handlers
from app.kit.paging import Flat, Paged
from app.kit.views import Data
from tests.openapi.document import Document, list_operations, list_schemas, structs_of

_BOUNDS = {
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "minItems", "maxItems"),
    *("minProperties", "maxProperties"),
}
_QUERY_BOUNDS = {
    "ge": "minimum",
    "le": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
}


class Thing(msgspec.Struct):
    """A thing.

    With parts.
    """

    example = {"name": "a"}

    name: str
    count: Annotated[int, Meta(ge=0)] = 3
    parts: "list[Thing]" = []


class ThingView(Thing):
    pass


_DESCRIPTIONS: list[tuple[Any, dict[str, Any]]] = [
    (Any, {}),
    (bool, {"type": "boolean"}),
    (datetime, {"type": "string", "format": "date-time"}),
    (date | None, {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}),
    (int | UnsetType, {"type": "integer"}),
    (Any | UnsetType, {}),
    (Literal["b", "a"], {"type": "string", "enum": ["b", "a"]}),
    (Literal[1], {"type": "integer", "const": 1}),
    (
        Annotated[float | None, Meta(ge=0, lt=1, description="A share")],
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
                {"type": "null"},
            ],
            "description": "A share",
        },
    ),
    (
        Annotated[str, Meta(min_length=0)] | Annotated[list[str], Meta(max_length=4)] | None,
        {
            "anyOf": [
                {"type": "string", "minLength": 0},
                {"type": "array", "items": {"type": "string"}, "maxItems": 4},
                {"type": "null"},
            ]
        },
    ),
    (
        Annotated[dict[Annotated[str, Meta(max_length=9)], Thing], Meta(max_length=2)],
        {
            "type": "object",
            "additionalProperties": {"$ref": "#/components/schemas/Thing"},
            "propertyNames": {"type": "string", "maxLength": 9},
            "maxProperties": 2,
        },
    ),
    (
        Annotated[Thing | UnsetType, Meta(description="One")],
        {"$ref": "#/components/schemas/Thing", "description": "One"},
    ),
]


def test_types_are_described(subtests: pytest.Subtests) -> None:
    for annotation, schema in _DESCRIPTIONS:
        with subtests.test(annotation=annotation):
            assert SchemaBuilder().describe(annotation) == schema


def test_a_type_that_has_no_schema_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes"):
        SchemaBuilder().describe(list[bytes])


def test_a_struct_is_a_component() -> None:
    builder = SchemaBuilder()
    assert builder.describe(Thing) == {"$ref": "#/components/schemas/Thing"}
    assert builder.components == {
        "Thing": {
            "type": "object",
            "description": "A thing.\n\nWith parts.",
            "properties": {
                "name": {"type": "string"},
                "count": {"type": "integer", "minimum": 0, "default": 3},
                "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}},
            },
            "required": ["name"],
            "example": {"name": "a"},
        }
    }


def test_generic_structs_are_named_after_what_they_hold() -> None:
    builder = SchemaBuilder()
    for kind in (Data[ThingView], Data[list[ThingView]], Paged[ThingView], Flat[Thing]):
        builder.describe(kind)
    names = {"ThingData", "ThingList", "ThingPage", "ThingFlatPage"}
    assert builder.components.keys() == {*names, "Thing", "ThingView", "Pagination"}
    assert builder.components["ThingList"]["example"] == {"data": [{"name": "a"}]}


def test_two_structs_of_one_name_are_refused() -> None:
    builder = SchemaBuilder()
    builder.describe(Thing)
    with pytest.raises(RuntimeError, match="the same name"):
        builder.describe(msgspec.defstruct("Thing", [("size", int | UnsetType, UNSET)]))


# The document


def test_names_of_schemas_are_plain_words(document: Document) -> None:
    names = [name for kind in ("schemas", "responses") for name in document["components"][kind]]
    assert [name for name in names if not re.fullmatch(r"([A-Z][A-Za-z]+)+", name)] == []


def test_no_name_is_that_of_a_field(document: Document) -> None:
    """Generators name an object within a struct after the struct and the field."""
    schemas = document["components"]["schemas"]
    fields = [
        name + "".join(word.capitalize() for word in field.split("_"))
        for name, schema in schemas.items()
        for field, described in schema.get("properties", {}).items()
        if described.get("type") == "object"
    ]
    assert set(fields) & schemas.keys() == set()


def test_a_union_has_several_branches(document: Document) -> None:
    unions = [
        (path, keyword, schema[keyword])
        for path, schema in list_schemas(document)
        for keyword in ("oneOf", "anyOf", "allOf")
        if isinstance(schema.get(keyword), list)
    ]
    assert unions
    assert [(path, keyword) for path, keyword, branches in unions if len(branches) < 2] == []
    assert [path for path, _, branches in unions if {} in branches] == []


def test_an_optional_query_parameter_is_left_out_instead_of_null(document: Document) -> None:
    nullable = [
        (name, parameter["name"])
        for name, _, operation in list_operations(document)
        for parameter in operation.get("parameters", [])
        if "null" in str(parameter["schema"])
    ]
    assert nullable == []


def test_patterns_are_those_of_json_schema(document: Document) -> None:
    """Python's own syntax is refused by generators and validators of other languages."""
    patterns = {str(schema.get("pattern", "")) for _, schema in list_schemas(document)}
    assert len(patterns) > 5
    assert [text for text in patterns if re.search(r"\\[AZ\"'#]|\(\?P|\(\?[a-z]", text)] == []


def test_the_bounds_of_bodies_are_kept(app: Litestar, document: Document) -> None:
    """Those that msgspec checks, also inside unions, lists and dictionaries."""
    _, checked = msgspec.json.schema_components(structs_of(app), schema_hook=lambda _: BINARY)
    documented = document["components"]["schemas"]
    shared = checked.keys() & documented.keys()
    assert len(shared) > 300
    lost = {name: _bounds(checked[name]) - _bounds(documented[name]) for name in shared}
    assert {name: bounds for name, bounds in lost.items() if bounds} == {}


def _bounds(schema: Any, path: str = "") -> set[tuple[str, str, Any]]:
    """Returns the path of a value, and what must be true of it, for all bounds in a schema."""
    if not isinstance(schema, dict):
        return set()
    bounds = {(path, key, value) for key, value in schema.items() if key in _BOUNDS}
    for branch in schema.get("anyOf", []):
        bounds |= _bounds(branch, path)
    for key in ("items", "additionalProperties", "propertyNames"):
        bounds |= _bounds(schema.get(key), f"{path}/{key}")
    for name, field in schema.get("properties", {}).items():
        bounds |= _bounds(field, f"{path}.{name}")
    return bounds


def test_the_bounds_of_query_parameters_are_kept(app: Litestar, document: Document) -> None:
    compared = 0
    for method, path, handler in list_handlers(app):
        operation = document["paths"].get(path, {}).get(method.lower(), {})
        schemas = {item["name"]: item["schema"] for item in operation.get("parameters", [])}
        for name, parameter in _query_parameters(handler) if operation else []:
            for attribute, keyword in _QUERY_BOUNDS.items():
                if (bound := getattr(parameter, attribute)) is not None:
                    assert schemas[name].get(keyword) == bound, f"{method} {path}: {name}"
                    compared += 1
    assert compared > 200


def _query_parameters(handler: HTTPRouteHandler) -> Iterator[tuple[str, QueryParameter]]:
    signatures = [handler.parsed_fn_signature]
    for name, provider in handler.resolve_dependencies().items():
        if name in handler.parsed_fn_signature.parameters:
            signatures.append(provider.parsed_fn_signature)
    for signature in signatures:
        for field in signature.parameters.values():
            if isinstance(field.kwarg_definition, QueryParameter):
                yield field.kwarg_definition.name or field.name, field.kwarg_definition


def test_bounds_of_some_values(document: Document, subtests: pytest.Subtests) -> None:
    schemas = document["components"]["schemas"]
    for name, field, bounds in [
        ("CreateAgent", "temperature", {"minimum": 0, "maximum": 1}),
        ("UpdateAgent", "temperature", {"minimum": 0, "maximum": 1}),
        ("AttachTool", "display_order", {"minimum": 0}),
        ("CompletionRequest", "top_p", {"minimum": 0, "maximum": 1}),
        ("CreateEmbedKey", "max_messages_per_day", {"minimum": 1, "maximum": 10_000_000}),
    ]:
        with subtests.test(name=name, field=field):
            schema = schemas[name]["properties"][field]
            [branch] = [item for item in schema.get("anyOf", [schema]) if item["type"] != "null"]
            assert {key: branch[key] for key in bounds} == bounds
