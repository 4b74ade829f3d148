"""/openapi.json and /docs: the document is complete, and no other host is needed."""

import re
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import msgspec
import pytest
from litestar import Litestar, Response
from litestar.datastructures import UploadFile
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute

from app import __version__
from app.http.costs import is_uncounted
from app.http.route_options import list_handlers, options_of
from tests.openapi.document import Document, list_operations, resolve, structs_of
from tests.processes import ROOT
from tests.world import Client


def _without(document: Document, status: str, *, counted: bool = False) -> list[str]:
    """Returns the operations that do not document a response with this status."""
    return [
        name
        for name, path, operation in list_operations(document)
        if status not in operation["responses"] and not (counted and is_uncounted("GET", path))
    ]


# The document


async def test_the_document_needs_no_login_and_is_json(anonymous: Client) -> None:
    answer = await anonymous.get("/openapi.json")
    assert answer.headers["content-type"].startswith("application/json")


def test_the_document_is_openapi_3_1(document: Document) -> None:
    assert document["openapi"].startswith("3.1.")


def test_the_document_names_the_service_and_its_version(document: Document) -> None:
    assert document["info"]["title"] == "Parley"
    assert document["info"]["version"] == __version__


def test_routes_that_exist_only_in_tests_are_not_shown(document: Document) -> None:
    assert not [path for path in document["paths"] if path.startswith("/test/")]


def test_only_paths_of_the_interface_are_shown(document: Document) -> None:
    assert {"/", "/{path}"} & document["paths"].keys() == set()


def test_every_reference_can_be_resolved(document: Document) -> None:
    components = document["components"]
    targets = {
        f"#/components/{kind}/{name}"
        for kind in ("schemas", "responses")
        for name in components[kind]
    }
    assert set(_references(document)) == targets


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def test_every_error_code_is_documented(document: Document) -> None:
    """Except for callers who are gone and see no response."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "app").rglob("errors.py")]
    codes = {code for source in sources for code in re.findall(r'\bcode="(\w+)"', source)}
    about = document["info"]["description"]
    assert {code for code in codes if f"`{code}`" not in about} == {"client_closed_request"}
    assert {"conversation_busy", "agent_archived", "origin_not_allowed", "user_not_found"} < codes


# Every operation


def test_every_operation_has_a_summary_of_its_own(document: Document) -> None:
    bad = [
        name
        for name, _, operation in list_operations(document)
        if " " not in operation.get("summary", "")
    ]
    assert bad == []


def test_every_operation_has_a_tag(document: Document) -> None:
    assert [
        name for name, _, operation in list_operations(document) if not operation.get("tags")
    ] == []


def test_every_tag_is_described(document: Document) -> None:
    assert [tag["name"] for tag in document["tags"] if len(tag["description"]) < 20] == []


def test_every_operation_documents_success(document: Document) -> None:
    bad = [
        name
        for name, _, operation in list_operations(document)
        if not any(status.startswith("2") for status in operation["responses"])
    ]
    assert bad == []


def test_every_operation_documents_invalid_input(document: Document) -> None:
    assert _without(document, "422") == []


def test_every_operation_documents_a_server_error(document: Document) -> None:
    assert _without(document, "500") == []


def test_every_rate_limited_operation_documents_the_limit(document: Document) -> None:
    assert _without(document, "429", counted=True) == []


def test_only_answers_to_forms_are_refused_with_status_400(document: Document) -> None:
    """Bad input is 422 elsewhere, never 400, which may come from the provider of a model alone."""
    bad = [
        name
        for name, path, operation in list_operations(document)
        if "400" in operation["responses"] and "/forms/" not in path
        if "502" not in operation["responses"]
    ]
    assert bad == []


def test_every_operation_with_sign_in_documents_401(document: Document) -> None:
    bad = [
        name
        for name, _, operation in list_operations(document)
        if operation["security"] and "401" not in operation["responses"]
    ]
    assert bad == []


def test_every_operation_with_a_permission_documents_403(document: Document) -> None:
    bad = [
        name
        for name, _, operation in list_operations(document)
        if "x-permission" in operation and "403" not in operation["responses"]
    ]
    assert bad == []


def test_every_operation_on_a_resource_documents_404(document: Document) -> None:
    bad = [
        name
        for name, path, operation in list_operations(document)
        if "{" in path and "404" not in operation["responses"]
    ]
    assert bad == []


def test_a_public_operation_says_that_it_needs_no_sign_in(
    app: Litestar, document: Document
) -> None:
    """An empty list; without one, generators take the operation for an oversight."""
    public = {
        f"{method} {path}"
        for method, path, handler in list_handlers(app)
        if options_of(handler).public
    }
    assert "POST /auth/login" in public
    for name, _, operation in list_operations(document):
        assert (operation["security"] == []) is (name in public), name


def test_the_security_schemes_of_operations_are_documented(
    document: Document,
) -> None:
    schemes = {
        scheme
        for _, _, operation in list_operations(document)
        for need in operation["security"]
        for scheme in need
    }
    assert schemes == set(document["components"]["securitySchemes"])


def test_every_error_is_the_envelope(document: Document) -> None:
    envelope = {"$ref": "#/components/schemas/Error"}
    bad = [
        (name, status)
        for name, _, operation in list_operations(document)
        for status, answer in operation["responses"].items()
        if status[0] in "45"
        if resolve(document, answer)["content"]["application/json"]["schema"] != envelope
    ]
    assert bad == []


def test_every_path_parameter_is_described(document: Document) -> None:
    bad = [
        name
        for name, path, operation in list_operations(document)
        if set(re.findall(r"{(\w+)}", path))
        != {item["name"] for item in operation.get("parameters", []) if item["in"] == "path"}
    ]
    assert bad == []


def test_a_list_describes_its_parameters(document: Document, subtests: pytest.Subtests) -> None:
    for path, parameters in [
        ("/api/v1/tenants", {"page", "per_page", "search", "plan", "sort"}),
        (
            "/api/v1/event-log",
            {"page", "per_page", "event_type", "correlation_id", "from", "to"},
        ),
    ]:
        with subtests.test(path=path, parameters=parameters):
            documented = document["paths"][path]["get"]["parameters"]
            assert {item["name"] for item in documented} == parameters


def test_the_bounds_of_a_page_are_described(document: Document) -> None:
    schemas = {
        item["name"]: item["schema"]
        for item in document["paths"]["/api/v1/tenants"]["get"]["parameters"]
    }
    assert (schemas["page"]["minimum"], schemas["page"]["default"]) == (1, 1)
    per_page = schemas["per_page"]
    assert (per_page["minimum"], per_page["maximum"], per_page["default"]) == (1, 100, 20)


# Examples


def _handlers(app: Litestar) -> Iterator[HTTPRouteHandler]:
    """Yields the handlers that the document contains."""
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                if handler.resolve_include_in_schema():
                    yield handler


def _struct_of(annotation: Any) -> type[msgspec.Struct] | None:
    """Returns the struct of a body or response; None for any other type."""
    if get_origin(annotation) is not None and issubclass(get_origin(annotation), Response):
        annotation = get_args(annotation)[0]
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    return None


def _examples(app: Litestar) -> list[tuple[type[msgspec.Struct], Any]]:
    pairs = [(kind, getattr(kind, "example", None)) for kind in structs_of(app)]
    return [(kind, example) for kind, example in pairs if example is not None]


def test_every_body_has_an_example(app: Litestar) -> None:
    bodies = {
        _struct_of(handler.parsed_data_field.annotation)
        for handler in _handlers(app)
        if handler.parsed_data_field is not None
    }
    bodies = {kind for kind in bodies if kind is not None and not _has_file(kind)}
    assert [kind for kind in bodies if not hasattr(kind, "example")] == []


def _has_file(kind: type[msgspec.Struct]) -> bool:
    types = [field.type for field in msgspec.structs.fields(kind)]
    return any(UploadFile in {kind, *get_args(kind)} for kind in types)


def test_every_answer_has_an_example(app: Litestar) -> None:
    answers = {_struct_of(handler.parsed_return_field.annotation) for handler in _handlers(app)}
    assert [kind for kind in answers - {None} if not hasattr(kind, "example")] == []


def test_the_filters_of_rows_are_described(document: Document) -> None:
    path = "/api/v1/data-tables/{table_id}"
    for name in ("rows", "export"):
        parameters = document["paths"][f"{path}/{name}"]["get"]["parameters"]
        [filters] = [item for item in parameters if item["name"] == "filter"]
        assert (filters["in"], filters["style"], filters["explode"]) == (
            *("query", "deepObject"),
            True,
        )


def test_an_example_is_shown_with_its_schema(app: Litestar, document: Document) -> None:
    schemas = document["components"]["schemas"]
    kinds = _documented_structs(app)
    examples = {kind.__name__: schemas.get(kind.__name__, {}).get("example") for kind in kinds}
    assert examples == {kind.__name__: getattr(kind, "example", None) for kind in kinds}


def _documented_structs(app: Litestar) -> list[type[msgspec.Struct]]:
    return [kind for kind, _ in _examples(app) if kind.__module__.startswith("app.")]


def test_every_example_is_valid(app: Litestar) -> None:
    examples = _examples(app)
    assert examples
    for kind, example in examples:
        msgspec.convert(example, kind)


def test_no_example_has_a_key_that_its_struct_does_not_know(app: Litestar) -> None:
    unknown = {
        kind.__name__: list(_unknown_keys(example, msgspec.convert(example, kind)))
        for kind, example in _examples(app)
    }
    assert {name: keys for name, keys in unknown.items() if keys} == {}


def _unknown_keys(example: Any, decoded: Any) -> Iterator[str]:
    """Yields the keys that decoding ignored, at any depth."""
    if isinstance(decoded, msgspec.Struct):
        names = {field.encode_name: field.name for field in msgspec.structs.fields(decoded)}
        yield from example.keys() - names - {decoded.__struct_config__.tag_field}
        decoded = {key: getattr(decoded, name) for key, name in names.items()}
    if isinstance(decoded, dict) and isinstance(example, dict):
        for key in example.keys() & decoded.keys():
            yield from _unknown_keys(example[key], decoded[key])
    if isinstance(decoded, list | tuple) and isinstance(example, list):
        for item, value in zip(example, decoded, strict=True):
            yield from _unknown_keys(item, value)


def test_examples_of_errors_have_their_details(document: Document) -> None:
    answers = document["paths"]["/api/v1/agents"]["post"]["responses"]
    contents = {
        status: resolve(document, answers[status])["content"]["application/json"]
        for status in ("403", "422", "429")
    }
    details = {
        status: content["example"]["error"].get("details") for status, content in contents.items()
    }
    assert set(details["403"]) == {"required", "your_role"}
    assert details["422"]
    assert set(details["429"]) == {"limit", "window", "retry_after"}
