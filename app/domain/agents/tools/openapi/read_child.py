"""Script that reads an OpenAPI document; `openapi_import.py` runs it with limits.

It reads JSON from standard input: `text` or `document`, and `wanted`, the operations of a tool,
null to list all. It writes one line, `ok` or `!` and an error, and then JSON.
"""

import json
import sys
from typing import Any

from app.domain.agents.tools.openapi import loading, operations
from app.domain.agents.tools.openapi.loading import Plain, Refused
from app.domain.agents.tools.openapi.references import Document, text_of

MAX_LISTED = 1000
MAX_OF_TOOL = 200
# Of the input_schema of a tool, which may have 5,000 parts and 64 KiB.
_PARTS_OF_TOOL = 3000
_MAX_SCHEMA_BYTES = 60_000


def main() -> None:
    try:
        answer = json.dumps(_read(json.loads(sys.stdin.buffer.read())))
        sys.stdout.buffer.write(b"ok\n" + answer.encode())
    except Refused as error:
        sys.stdout.buffer.write(f"!{error}\n".encode())
    except RecursionError:
        sys.stdout.buffer.write(b"!is nested too deeply\n")


def _read(request: dict[str, Any]) -> dict[str, Any]:
    given = request["document"]
    root = loading.parse(request["text"]) if given is None else Plain().copy(given)
    _check_version(root)
    document = Document(root)
    found = operations.Operations(document)
    info = root.get("info")
    info = info if isinstance(info, dict) else {}
    wanted = request["wanted"]
    items = found.items[:MAX_LISTED] if wanted is None else _select(found, wanted)
    budget = None if wanted is None else _PARTS_OF_TOOL // max(len(items), 1)
    described = [found.describe(item, budget) for item in items]
    return {
        "title": text_of(info.get("title"), 100),
        "version": text_of(info.get("version"), 50),
        "description": text_of(info.get("description"), 1000),
        "base_url": operations.find_base_url(document),
        "security": operations.list_security_schemes(document),
        "total": len(found.items),
        "operations": described,
        "input_schema": None if wanted is None else _write_tool_input(described),
    }


def _check_version(root: dict[str, Any]) -> None:
    version = root.get("openapi")
    if "swagger" in root:
        raise Refused("is Swagger 2; convert it to OpenAPI 3 first")
    if not str(version).startswith(("3.0", "3.1")):
        raise Refused("is not an OpenAPI document of version 3.0 or 3.1")


def _select(found: operations.Operations, wanted: list[str]) -> list[dict[str, Any]]:
    by_name: dict[str, dict[str, Any]] = {}
    for item in found.items:
        operation_id = item["operation"].get("operationId")
        if isinstance(operation_id, str):
            by_name.setdefault(operation_id, item)
        by_name[item["name"]] = item
    for name in wanted:
        if name not in by_name:
            raise Refused(f"has no operation {name[:100]}")
    return list({id(by_name[name]): by_name[name] for name in wanted}.values())


def _write_tool_input(described: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the JSON Schema of a run's input. One that is too long has no details."""
    usable = [item for item in described if item["schema"] is not None]
    schema = _join(usable)
    if len(json.dumps(schema)) > _MAX_SCHEMA_BYTES:
        for item in usable:
            if "body" in item["schema"]["properties"]:
                item["schema"]["properties"]["body"] = {}
        schema = _join(usable)
    if len(json.dumps(schema)) > _MAX_SCHEMA_BYTES:
        # Names of functions alone.
        schema = {
            "type": "object",
            "properties": {
                "endpoint": {"type": "string", "enum": [item["id"] for item in usable]},
                "params": {"type": "object", "description": "For the path and the query"},
                "headers": {"type": "object"},
                "body": {"description": "What to send"},
            },
            "required": ["endpoint"],
        }
    return schema


def _join(usable: list[dict[str, Any]]) -> dict[str, Any]:
    """Some providers refuse alternatives at the top, so each part has its own."""
    lines = [f"{item['id']}: {item['summary'][:150]}".rstrip(": ") for item in usable]
    names = [item["id"] for item in usable]
    properties: dict[str, Any] = {
        "endpoint": {"type": "string", "enum": names, "description": "\n".join(lines)}
    }
    required = ["endpoint"]
    for part in ("params", "headers", "body"):
        having = [item for item in usable if part in item["schema"]["properties"]]
        if not having:
            continue
        if len(usable) == 1:
            properties[part] = having[0]["schema"]["properties"][part]
            required += [part] if part in having[0]["schema"]["required"] else []
            continue
        choices = [
            {"title": f"For {item['id']}", **item["schema"]["properties"][part]} for item in having
        ]
        # Operations without this part may leave it empty.
        properties[part] = {"anyOf": [*choices, {"maxProperties": 0, "title": "For others"}]}
    return {"type": "object", "properties": properties, "required": required} | {
        "additionalProperties": False
    }
