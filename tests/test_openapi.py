"""/openapi.json and /docs: complete, true, and served by this instance alone."""

import re
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import msgspec
import pytest
from litestar import Litestar, Response
from litestar.datastructures import UploadFile
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute

from app.http.costs import is_uncounted
from app.http.openapi import structs_of
from tests.world import Client

Document = dict[str, Any]
METHODS = {"get", "post", "put", "patch", "delete"}


@pytest.fixture
async def document(anonymous: Client) -> Document:
    answer = await anonymous.get("/openapi.json")
    assert answer.status_code == 200
    found: Document = answer.json()
    return found


def _operations(document: Document) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method in METHODS:
                yield f"{method.upper()} {path}", path, operation


def _without(document: Document, wanted: str, *, counted: bool = False) -> list[str]:
    """The operations that do not tell of an answer they can give."""
    return [
        name
        for name, path, operation in _operations(document)
        if wanted not in operation["responses"] and not (counted and is_uncounted("GET", path))
    ]


# The document


async def test_the_document_needs_no_login_and_is_json(anonymous: Client) -> None:
    answer = await anonymous.get("/openapi.json")
    assert answer.headers["content-type"].startswith("application/json")


def test_the_document_is_openapi_3_1(document: Document) -> None:
    assert document["openapi"].startswith("3.1.")


def test_the_document_names_the_service_and_its_version(document: Document) -> None:
    assert document["info"]["title"] == "Parley"
    assert re.fullmatch(r"\d+\.\d+\.\d+", document["info"]["version"])


def test_routes_that_exist_only_in_tests_are_not_shown(document: Document) -> None:
    assert not [path for path in document["paths"] if path.startswith("/test/")]


def test_only_paths_of_the_interface_are_shown(document: Document) -> None:
    assert {"/", "/{path}"} & document["paths"].keys() == set()


def test_every_reference_leads_somewhere(document: Document) -> None:
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert set(_references(document)) - known == set()


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


# Every operation


def test_every_operation_has_a_summary_of_its_own(document: Document) -> None:
    bad = [
        name
        for name, _, operation in _operations(document)
        if " " not in operation.get("summary", "")
    ]
    assert bad == []


def test_every_operation_has_a_tag(document: Document) -> None:
    assert [name for name, _, operation in _operations(document) if not operation.get("tags")] == []


def test_no_two_operations_have_the_same_id(document: Document) -> None:
    ids = [operation["operationId"] for _, _, operation in _operations(document)]
    assert len(ids) == len(set(ids))


def test_every_operation_tells_of_success(document: Document) -> None:
    bad = [
        name
        for name, _, operation in _operations(document)
        if not any(status.startswith("2") for status in operation["responses"])
    ]
    assert bad == []


def test_every_operation_tells_of_wrong_input(document: Document) -> None:
    assert _without(document, "422") == []


def test_every_operation_tells_of_a_crash(document: Document) -> None:
    assert _without(document, "500") == []


def test_every_operation_that_is_counted_tells_of_the_limit(document: Document) -> None:
    assert _without(document, "429", counted=True) == []


def test_no_operation_tells_of_a_status_that_is_never_given(document: Document) -> None:
    """Bad input is 422 here, never 400."""
    assert [name for name, _, op in _operations(document) if "400" in op["responses"]] == []


def test_every_operation_that_needs_a_login_tells_of_its_lack(document: Document) -> None:
    bad = [
        name
        for name, _, operation in _operations(document)
        if operation.get("security") and "401" not in operation["responses"]
    ]
    assert bad == []


def test_every_operation_with_a_permission_tells_of_its_lack(document: Document) -> None:
    bad = [
        name
        for name, _, operation in _operations(document)
        if "x-permission" in operation and "403" not in operation["responses"]
    ]
    assert bad == []


def test_every_operation_on_one_thing_tells_that_it_may_be_missing(document: Document) -> None:
    bad = [
        name
        for name, path, operation in _operations(document)
        if "{" in path and "404" not in operation["responses"]
    ]
    assert bad == []


def test_what_needs_a_login_names_the_scheme_that_the_document_describes(
    document: Document,
) -> None:
    schemes = {
        scheme
        for _, _, operation in _operations(document)
        for need in operation.get("security", [])
        for scheme in need
    }
    assert schemes == set(document["components"]["securitySchemes"])


def test_every_error_is_the_envelope(document: Document) -> None:
    envelope = {"$ref": "#/components/schemas/Error"}
    bad = [
        (name, status)
        for name, _, operation in _operations(document)
        for status, answer in operation["responses"].items()
        if status[0] in "45" and answer["content"]["application/json"]["schema"] != envelope
    ]
    assert bad == []


def test_every_path_parameter_is_described(document: Document) -> None:
    bad = [
        name
        for name, path, operation in _operations(document)
        if set(re.findall(r"{(\w+)}", path))
        != {item["name"] for item in operation.get("parameters", []) if item["in"] == "path"}
    ]
    assert bad == []


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("/api/v1/tenants", {"page", "per_page", "search", "plan", "sort"}),
        (
            "/api/v1/event-log",
            {"page", "per_page", "event_type", "correlation_id", "from", "to"},
        ),
    ],
)
def test_a_list_describes_its_parameters(
    document: Document, path: str, parameters: set[str]
) -> None:
    found = document["paths"][path]["get"]["parameters"]
    assert {item["name"] for item in found} == parameters


def test_the_bounds_of_a_page_are_described(document: Document) -> None:
    found = {
        item["name"]: item["schema"]
        for item in document["paths"]["/api/v1/tenants"]["get"]["parameters"]
    }
    assert (found["page"]["minimum"], found["page"]["default"]) == (1, 1)
    per_page = found["per_page"]
    assert (per_page["minimum"], per_page["maximum"], per_page["default"]) == (1, 100, 20)


# Examples


def _handlers(app: Litestar) -> Iterator[HTTPRouteHandler]:
    """Those that the document shows."""
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                if handler.resolve_include_in_schema():
                    yield handler


def _struct(annotation: Any) -> type[msgspec.Struct] | None:
    """The struct that a handler takes or gives, if it is one and no generic list."""
    if get_origin(annotation) is not None and issubclass(get_origin(annotation), Response):
        annotation = get_args(annotation)[0]
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    return None


def _with_example(app: Litestar) -> list[tuple[type[msgspec.Struct], Any]]:
    found = [(kind, getattr(kind, "example", None)) for kind in structs_of(app)]
    return [(kind, example) for kind, example in found if example is not None]


def test_every_body_has_an_example(app: Litestar) -> None:
    bodies = {
        _struct(handler.parsed_data_field.annotation)
        for handler in _handlers(app)
        if handler.parsed_data_field is not None
    }
    bodies = {kind for kind in bodies if kind is not None and not _holds_a_file(kind)}
    assert [kind for kind in bodies if not hasattr(kind, "example")] == []


def _holds_a_file(kind: type[msgspec.Struct]) -> bool:
    return any(field.type is UploadFile for field in msgspec.structs.fields(kind))


def test_every_answer_has_an_example(app: Litestar) -> None:
    answers = {_struct(handler.parsed_return_field.annotation) for handler in _handlers(app)}
    assert [kind for kind in answers - {None} if not hasattr(kind, "example")] == []


def test_an_example_is_shown_with_its_schema(app: Litestar, document: Document) -> None:
    schemas = document["components"]["schemas"]
    shown = {kind.__name__: schemas.get(kind.__name__, {}).get("example") for kind in _shown(app)}
    assert shown == {kind.__name__: getattr(kind, "example", None) for kind in _shown(app)}


def _shown(app: Litestar) -> list[type[msgspec.Struct]]:
    return [kind for kind, _ in _with_example(app) if kind.__module__.startswith("app.")]


def test_every_example_is_a_right_value(app: Litestar) -> None:
    examples = _with_example(app)
    assert examples
    for kind, example in examples:
        msgspec.convert(example, kind)


def test_no_example_has_a_key_that_its_struct_does_not_know(app: Litestar) -> None:
    unknown = {
        kind.__name__: list(_unknown(example, msgspec.convert(example, kind)))
        for kind, example in _with_example(app)
    }
    assert {name: keys for name, keys in unknown.items() if keys} == {}


def _unknown(example: Any, decoded: Any) -> Iterator[str]:
    """Keys that decoding dropped, at any depth."""
    if isinstance(decoded, msgspec.Struct):
        known = {field.encode_name: field.name for field in msgspec.structs.fields(decoded)}
        yield from example.keys() - known
        decoded = {key: getattr(decoded, name) for key, name in known.items()}
    if isinstance(decoded, dict) and isinstance(example, dict):
        for key in example.keys() & decoded.keys():
            yield from _unknown(example[key], decoded[key])
    if isinstance(decoded, list | tuple) and isinstance(example, list):
        for item, value in zip(example, decoded, strict=True):
            yield from _unknown(item, value)


# The pages


async def test_the_documentation_page_is_served(anonymous: Client) -> None:
    answer = await anonymous.get("/docs")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")


async def test_the_documentation_page_names_no_other_host(anonymous: Client) -> None:
    assert "//" not in (await anonymous.get("/docs")).text


def _assets(page: str) -> list[str]:
    return re.findall(r'(?:src|href)="([^"]+)"', page)


async def test_every_asset_of_the_page_is_served(anonymous: Client) -> None:
    assets = _assets((await anonymous.get("/docs")).text)
    answers = {path: await anonymous.get(path) for path in assets}
    assert len(answers) >= 3
    assert {answer.status_code for answer in answers.values()} == {200}
    assert all(answer.content for answer in answers.values())


@pytest.mark.parametrize(
    ("ending", "kind"), [(".js", "text/javascript"), (".css", "text/css"), (".png", "image/png")]
)
async def test_an_asset_says_what_it_is(anonymous: Client, ending: str, kind: str) -> None:
    assets = _assets((await anonymous.get("/docs")).text)
    answers = [await anonymous.get(path) for path in assets if path.endswith(ending)]
    assert answers
    assert {answer.headers["content-type"].split(";")[0] for answer in answers} == {kind}


async def test_the_page_shows_this_instances_document(anonymous: Client) -> None:
    assert '"/openapi.json"' in (await anonymous.get("/docs/start.js")).text


async def test_the_page_may_load_from_this_instance_only(anonymous: Client) -> None:
    policy = (await anonymous.get("/docs")).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert not re.search(r"https?:|\*|unsafe-eval", policy)


@pytest.mark.parametrize("name", ["nothing.js", "..%2f__init__.py", "%2e%2e/__init__.py", "index"])
async def test_no_other_file_is_served(anonymous: Client, name: str) -> None:
    answer = await anonymous.get(f"/docs/assets/{name}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_an_unknown_path_of_one_word_is_the_envelope(anonymous: Client, method: str) -> None:
    """The documentation's own routes must not catch what nobody serves."""
    answer = await anonymous(method, "/nothing")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


def test_every_code_of_an_error_is_told(document: Document) -> None:
    about = document["info"]["description"]
    for code in ("conversation_busy", "agent_archived", "origin_not_allowed", "user_not_found"):
        assert f"`{code}`" in about
    assert "client_closed_request" not in about


def test_examples_of_errors_have_the_details_that_are_promised(document: Document) -> None:
    answers = document["paths"]["/api/v1/agents"]["post"]["responses"]
    shown = {
        status: answers[status]["content"]["application/json"]["example"]["error"].get("details")
        for status in ("403", "422", "429")
    }
    assert set(shown["403"]) == {"required", "your_role"}
    assert shown["422"]
    assert set(shown["429"]) == {"limit", "window", "retry_after"}
