"""POST /v1/tools/import-openapi: what is found in a document, and the tool that comes out."""

import json
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from app.domain.agents.tools import json_schema
from tests.agents.tools.factories import ToolClient
from tests.agents.tools.site import Site, respond_with
from tests.assertions import refused
from tests.world import Client, World

PATH = "/v1/tools/import-openapi"
_PET = {
    "type": "object",
    "required": ["name", "id"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "name": {"type": "string", "minLength": 1},
        "tag": {"type": "string", "nullable": True},
        "parent": {"$ref": "#/components/schemas/Pet"},
    },
}

_PATHS: dict[str, Any] = {
    "/pets": {
        "get": {
            "operationId": "listPets",
            "summary": "List pets",
            "parameters": [{"$ref": "#/components/parameters/Limit"}],
        },
        "post": {
            "operationId": "pets.create",
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
            },
        },
    },
    "/pets/{id}": {
        "get": {
            "operationId": "getPet",
            "parameters": [
                {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                {"name": "Authorization", "in": "header", "required": True},
            ],
        },
        "head": {"operationId": "headPet"},
    },
}


def _document(url: str = "https://pets.example.com/v1", **more: Any) -> dict[str, Any]:
    return {
        "openapi": "3.0.3",
        "info": {"title": "Pets", "version": "2", "description": "A shop"},
        "servers": [{"url": url}],
        "components": {
            "schemas": {"Pet": _PET},
            "parameters": {
                "Limit": {"name": "limit", "in": "query", "schema": {"type": "integer"}}
            },
            "securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "X-Pets-Key"},
                "token": {"type": "http", "scheme": "bearer"},
                "odd": {"type": "openIdConnect"},
            },
        },
        "security": [{"key": []}],
        "paths": _PATHS,
    } | more


async def _import(client: Client, **body: Any) -> dict[str, Any]:
    answer = await client.post(PATH, body)
    assert answer.status_code == 200, answer.text
    imported: dict[str, Any] = answer.json()["data"]
    return imported


async def _problem(client: Client, **body: Any) -> str:
    details = refused(await client.post(PATH, body), 422, "validation_error")["details"]
    return " ".join(f"{name}: {text}" for name, text in details.items())


async def test_operations_are_listed_before_any_tool_exists(developer: Client) -> None:
    for document in (_document(), json.dumps(_document()), yaml.safe_dump(_document())):
        api = await _import(developer, document=document)
        assert (api["title"], api["total"], api["tool"]) == ("Pets", 4, None)
        assert api["base_url"] == "https://pets.example.com/v1"
        operations = {operation["id"]: operation for operation in api["operations"]}
        assert list(operations) == ["listPets", "pets_create", "getPet", "headPet"]
        assert operations["pets_create"]["operation_id"] == "pets.create"
        assert operations["headPet"]["reason"] == "the method HEAD is not supported"
        get = operations["getPet"]["schema"]
        assert get["properties"]["params"]["required"] == ["id"]
        assert list(get["properties"]["headers"]["properties"]) == ["X-Trace"]
        pet = operations["pets_create"]["schema"]["properties"]["body"]
        assert pet["required"] == ["name"]
        assert pet["properties"]["tag"] == {"type": ["string", "null"]}
        assert pet["properties"]["parent"] == {}
        schemes = {scheme["name"]: scheme["auth_type"] for scheme in api["security"]}
        assert schemes == {"key": "api_key", "token": "bearer", "odd": None}
    tools = (await developer.get("/v1/tools")).json()["data"]
    assert tools == []


async def test_a_dry_run_creates_no_tool(developer: Client) -> None:
    body = {"document": _document(), "operations": ["getPet"], "dry_run": True}
    api = await _import(developer, **body)
    assert api["tool"] is None
    assert [operation["id"] for operation in api["operations"]] == ["getPet"]


async def test_the_tool_calls_the_chosen_operations(tool_client: ToolClient, site: Site) -> None:
    api = await _import(
        tool_client.client,
        document=_document(f"{site.url}/v1/"),
        operations=["getPet", "pets.create"],
        name="Pet shop",
    )
    tool = api["tool"]
    assert (tool["name"], tool["auth_type"]) == ("Pet shop", "none")
    assert tool["input_schema"]["properties"]["endpoint"]["enum"] == ["getPet", "pets_create"]
    run = {"endpoint": "getPet", "params": {"id": "a/b"}}
    await tool_client.get_output(tool["id"], run)
    assert (site.last.method, site.last.path) == ("GET", "/v1/pets/a%2Fb")
    run = {"endpoint": "pets_create", "params": {}, "body": {"name": "Rex"}}
    await tool_client.get_output(tool["id"], run)
    assert (site.last.method, site.last.body) == ("POST", b'{"name":"Rex"}')
    answer = await tool_client.client.post(
        f"/v1/tools/{tool['id']}/execute", {"input": {"endpoint": "deletePet"}}
    )
    assert answer.status_code == 422


async def test_one_operation_needs_what_its_document_needs(developer: Client) -> None:
    api = await _import(developer, document=_document(), operations=["pets.create"])
    schema = api["tool"]["input_schema"]
    assert schema["required"] == ["endpoint", "body"]
    assert "anyOf" not in schema["properties"]["body"]


async def test_a_credential_is_used_as_the_document_says(world: World) -> None:
    admin = await world.user("tenant_admin")
    body = {"name": "Key", "type": "api_key", "secrets": {"api_key": "k"}}
    credential_id = (await admin.post("/v1/credentials", body)).json()["id"]
    chosen = {"document": _document(), "operations": ["getPet"]}
    api = await _import(admin, **chosen, credential_id=credential_id)
    assert api["tool"]["auth_type"] == "api_key"
    assert "cred_unknown" not in str(api)
    assert "does not exist" in await _problem(admin, **chosen, credential_id="cred_unknown")
    plain = _document() | {"components": {}}
    assert "credential_id" in await _problem(
        admin, document=plain, operations=["getPet"], credential_id=credential_id
    )
    stranger = await world.user("tenant_admin")
    assert "does not exist" in await _problem(stranger, **chosen, credential_id=credential_id)


async def test_servers_have_variables_and_can_be_replaced(developer: Client) -> None:
    servers = [
        {
            "url": "https://{region}.example.com/{base}",
            "variables": {"region": {"default": "eu"}, "base": {"default": "v2"}},
        }
    ]
    api = await _import(developer, document=_document(servers=servers))
    assert api["base_url"] == "https://eu.example.com/v2"
    relative = _document(servers=[{"url": "/v1"}])
    assert "base_url" in await _problem(developer, document=relative, operations=["getPet"])
    other = {"base_url": "https://b.example.com", "operations": ["getPet"]}
    tool = (await _import(developer, document=relative, **other))["tool"]
    stored = (await developer.get(f"/v1/tools/{tool['id']}")).json()["data"]
    assert stored["config"]["base_url"] == "https://b.example.com"


async def test_a_document_is_fetched_like_any_other_address(
    developer: Client, site: Site, subtests: pytest.Subtests
) -> None:
    site.handler = respond_with(yaml.safe_dump(_document("/v1")))
    api = await _import(developer, url=f"{site.url}/docs/openapi.yaml")
    assert api["base_url"] == f"{site.url}/v1"
    site.handler = respond_with("no", status=404)
    assert "404" in await _problem(developer, url=f"{site.url}/openapi.yaml")
    site.handler = respond_with(status=302, headers={"Location": "http://169.254.169.254/"})
    assert "url" in await _problem(developer, url=f"{site.url}/openapi.yaml")
    site.handler = respond_with("x" * (3 << 20))
    assert "url" in await _problem(developer, url=f"{site.url}/openapi.yaml")
    for url in ("http://10.0.0.1/", "https://169.254.169.254/a", "file:///etc/passwd", "x"):
        with subtests.test(url=url):
            assert "url" in await _problem(developer, url=url)


# Hostile documents


def _aliases() -> str:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    for number in range(1, 12):
        lines += [f"a{number}: &a{number} [{','.join([f'*a{number - 1}'] * 10)}]"]
    return "openapi: 3.0.0\n" + "\n".join(lines)


def _references(levels: int) -> dict[str, Any]:
    """Each schema has ten properties of the next one."""
    schemas: dict[str, Any] = {
        f"S{level}": {
            "type": "object",
            "properties": {
                f"p{number}": {"$ref": f"#/components/schemas/S{level + 1}"} for number in range(10)
            },
        }
        for level in range(levels)
    }
    schemas[f"S{levels}"] = {"type": "string"}
    document = _document()
    document["components"]["schemas"] = schemas | {"Pet": {"$ref": "#/components/schemas/S0"}}
    return document


async def test_hostile_documents_are_refused(developer: Client, subtests: pytest.Subtests) -> None:
    nested: Any = "x"
    for _ in range(200):
        nested = [nested]
    cases: dict[str, Any] = {
        "a bomb of aliases": _aliases(),
        "an alias of itself": "openapi: 3.0.0\na: &a [*a]",
        "an object of Python": "openapi: !!python/object/apply:os.system ['id']",
        "a deep document": _document(paths={"/a": nested}),
        "a deep text": "[" * 100_000,
        "a deep YAML": "- " * 20_000,
        "another document": _document(paths={"/a": {"$ref": "https://evil.example.com/a.json"}}),
        "a file": _document(paths={"/a": {"$ref": "file:///etc/passwd"}}),
        "a reference to itself": _document(paths={"/a": {"$ref": "#/paths/~1a"}}),
        "Swagger 2": {"swagger": "2.0", "paths": {}},
        "no OpenAPI": {"hello": 1},
        "a list": "[]",
        "wrong JSON": "{",
        "wrong YAML": "a: b: c",
        "wrong paths": _document(paths=[1]),
    }
    for name, document in cases.items():
        with subtests.test(name=name):
            assert await _problem(developer, document=document)


async def test_values_of_wrong_types_are_left_out(developer: Client) -> None:
    document = _document(
        servers=[7],
        security="x",
        info=[],
        paths={
            "/a": {
                "get": {
                    "operationId": 5,
                    "summary": {"a": 1},
                    "parameters": [3, {"name": 7}, {"name": "q", "in": "query", "schema": 9}],
                    "requestBody": [],
                },
                "put": "x",
            },
            "b": {"get": {}},
            "/c": None,
        },
    )
    api = await _import(developer, document=document)
    assert [operation["id"] for operation in api["operations"]] == ["get_a"]
    assert api["operations"][0]["reason"] is None


async def test_bombs_of_references_are_cut(developer: Client) -> None:
    api = await _import(developer, document=_references(12))
    (create,) = [item for item in api["operations"] if item["id"] == "pets_create"]
    assert len(json.dumps(create)) < 100_000
    tool = (await _import(developer, document=_references(12), operations=["pets.create"]))["tool"]
    json_schema.validate_schema("input_schema", tool["input_schema"])


async def test_a_document_may_have_very_many_operations(developer: Client) -> None:
    lines = [f"  /p{number}: {{get: {{operationId: same}}}}" for number in range(20_000)]
    document = "openapi: 3.1.0\ninfo: {title: Many}\npaths:\n" + "\n".join(lines)
    api = await _import(developer, document=document)
    assert (api["total"], len(api["operations"])) == (20_000, 1000)
    assert len({operation["id"] for operation in api["operations"]}) == 1000
    wanted = [operation["id"] for operation in api["operations"][:200]]
    base_url = "https://a.example.com"
    tool = (await _import(developer, document=document, operations=wanted, base_url=base_url))[
        "tool"
    ]
    assert len(tool["input_schema"]["properties"]["endpoint"]["enum"]) == 200


async def test_operations_that_tools_cannot_call_say_why(
    developer: Client, subtests: pytest.Subtests
) -> None:
    form = {"required": True, "content": {"multipart/form-data": {}}}
    deep = {"name": "f", "in": "query", "schema": {"type": "object"}}
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("/a", {"requestBody": form}, "not JSON"),
        ("/a", {"parameters": [deep]}, "object"),
        ("/a", {"parameters": [{"name": "c", "in": "cookie", "required": True}]}, "cookie"),
        ("/a/../b", {}, "path"),
        ("/a b", {}, "path"),
        ("/a", {"servers": [{"url": "https://b.example.com"}]}, "server"),
        ("/{x}", {"parameters": [{"name": "x", "in": "query"}]}, "two parameters"),
        ("/a", {"parameters": [{"name": "a\r\nb", "in": "header"}]}, "header"),
    ]
    for path, operation, words in cases:
        with subtests.test(path=path, operation=operation):
            document = _document(paths={path: {"post": operation | {"operationId": "it"}}})
            (listed,) = (await _import(developer, document=document))["operations"]
            assert words in listed["reason"]
            assert listed["schema"] is None
            assert words in await _problem(developer, document=document, operations=["it"])


async def test_wrong_requests_are_refused(developer: Client, world: World) -> None:
    assert "document" in await _problem(developer)
    both = {"document": _document(), "url": "https://a.example.com"}
    assert "document" in await _problem(developer, **both)
    unknown = await _problem(developer, document=_document(), operations=["nothing"])
    assert "nothing" in unknown
    user = await world.user("agent_user")
    refused(await user.post(PATH, {"document": _document()}), 403, "forbidden")
