"""The largest definitions that are legal by more than their schema, by the struct of a body."""

import base64
from collections.abc import Callable
from typing import Any, Final

import msgspec

from tests.lengths import rounds
from tests.loop.definition import Definition, Ids
from tests.loop.form_definitions import FORMS
from tests.world import PASSWORD

# With them, the input of a workflow is as large as a body may be.
_MOST_VALUES = 14_000

# Data tables

_COLUMN_TYPES = ("text", "number", "integer", "boolean", "date", "datetime", "json")


def _table(_ids: Ids) -> Definition:
    columns: list[dict[str, Any]] = [
        {"name": "text", "type": "text", "indexed": True},
        {"name": "label", "type": "text"},
        {"name": "choice", "type": "select", "options": [f"o{index}" for index in range(200)]},
    ]
    for number in range(50 - len(columns)):
        kind = _COLUMN_TYPES[number % len(_COLUMN_TYPES)]
        columns.append({"name": f"{kind}{number}", "type": kind})
    rows = [_row(columns, number) for number in range(500)]
    values = {**_row(columns, 1000), "label": "x" * 40_000, "json6": {"a": list(range(4000))}}
    return Definition(
        {"name": "Table", "description": "x" * 2000, "columns": columns},
        {"CreateRows": {"rows": rows}, "ChangeRow": {"values": values}},
    )


def _row(columns: list[dict[str, Any]], number: int) -> dict[str, Any]:
    values: dict[str, Any] = {
        "text": "x" * 30,
        "number": 1.5,
        "integer": 123456789,
        "boolean": True,
        "date": "2026-01-01",
        "datetime": "2026-01-01T12:00:00Z",
        "json": {"a": [1, 2, {"b": "x" * 20}]},
        "select": "o1",
    }
    row = {column["name"]: values[column["type"]] for column in columns}
    return {**row, "text": f"t{number}"}


# Workflows


def _templates(_ids: Ids) -> Definition:
    """Each node has as many templates as all may have, and all that come before it lead to it."""
    nodes = [
        {
            "id": f"n{number}",
            "type": "transform",
            "config": {
                "output": {
                    f"k{index}": "{% if input.a %}x{% elif input.b %}y{% endif %}" * 10
                    for index in range(5)
                }
            },
        }
        for number in range(100)
    ]
    edges = [
        {"from": f"n{source}", "to": f"n{target}"}
        for target in range(100)
        for source in range(max(0, target - 5), target)
    ]
    return _workflow(nodes, edges[:500], _MOST_VALUES)


def _large_values(_ids: Ids) -> Definition:
    """Each node passes a large value on."""
    nodes: list[dict[str, Any]] = [
        {"id": "n0", "type": "transform", "config": {"output": "{{ input }}"}}
    ]
    nodes += [
        {
            "id": f"n{number}",
            "type": "transform",
            "config": {"output": f"{{{{ nodes.n{number - 1}.output }}}}"},
        }
        for number in range(1, 8)
    ]
    edges = [{"from": f"n{number - 1}", "to": f"n{number}"} for number in range(1, 8)]
    return _workflow(nodes, edges, rounds(2_000, _MOST_VALUES))


def _texts(ids: Ids) -> Definition:
    nodes = [
        {"id": f"n{number}", "type": "transform", "config": {"output": "x" * 5000}}
        for number in range(96)
    ]
    nodes += [
        {
            "id": "notify",
            "type": "notification",
            "config": {"role": "tenant_admin", "title": "x" * 200, "message": "x" * 10_000},
        },
        {
            "id": "ask",
            "type": "approval",
            "config": {
                "user_ids": [ids["me"]],
                "title": "x" * 200,
                "message": "x" * 5000,
                "details": {"Values": "{{ input.values }}"}
                | {f"Name {number}": "x" * 1000 for number in range(19)},
            },
        },
        {
            "id": "query",
            "type": "data_table",
            "config": {"table_id": ids["table_id"], "operation": "query", "limit": 500},
        },
    ]
    return _workflow(nodes, [], rounds(2_000, _MOST_VALUES))


def _workflow(
    nodes: list[dict[str, Any]], edges: list[dict[str, Any]], value_count: int
) -> Definition:
    values = [{"a": number, "b": "x" * 30} for number in range(value_count)]
    return Definition(
        {"name": "Workflow", "description": "x" * 2000, "nodes": nodes, "edges": edges},
        {"ExecuteWorkflow": {"input": {"values": values, "a": 0, "b": 1}}},
    )


# Tools


def _function(_ids: Ids) -> Definition:
    schema = {
        "type": "object",
        "properties": {
            f"p{number}": {"type": "string", **({"pattern": "^[a-z]+$"} if number < 20 else {})}
            for number in range(800)
        },
    }
    return _tool(
        "function",
        {
            "runtime": "python",
            "code": "def main(input):\n    return 'x' * 900000\n" + "#" * 260_000,
        },
        {f"p{number}": "x" * 10 for number in range(800)},
        input_schema=schema,
    )


def _rest_api(_ids: Ids) -> Definition:
    endpoints = {
        f"e{number}": {
            "method": "POST",
            "path": "/" + "x" * 1000,
            "default_headers": {f"X-{index}": "x" * 20 for index in range(20)},
        }
        for number in range(200)
    }
    config = {"base_url": "http://127.0.0.1:9", "endpoints": endpoints, "timeout_ms": 1000}
    return _tool("rest_api", config, {"endpoint": "e1", "body": {"a": "x" * 500_000}})


def _database(_ids: Ids) -> Definition:
    conditions = " AND ".join(f"a{number} = {number}" for number in range(900))
    query = f"SELECT 1 AS one WHERE {conditions}"[:19_990].rpartition(" AND ")[0]
    return _tool("database", {"db_type": "sqlite", "database": "loop"}, {"query": query})


def _tool(tool_type: str, config: dict[str, Any], value: dict[str, Any], **more: Any) -> Definition:
    body = {
        "name": "Tool",
        "description": "x" * 2000,
        "category": "automation",
        "tool_type": tool_type,
        "config": config,
        "auth_type": "none",
        **more,
    }
    return Definition(body, {"Execute": {"input": value}})


# Others


def _webhook_subscription(_ids: Ids) -> Definition:
    return Definition(
        {
            "event_type": "system.test",
            "action_type": "webhook",
            "action_config": {"url": "http://127.0.0.1:9/" + "x" * 1900},
            "filters": {f"a{number}.b": {"exists": False} for number in range(20)},
        }
    )


def _workflow_subscription(ids: Ids) -> Definition:
    text = "{{ event.data.text | upper | title | tojson }}"
    values = {f"k{number}": text for number in range(162)}
    return Definition(
        {
            "event_type": "system.test",
            "action_type": "workflow",
            "action_config": {"workflow_id": ids["workflow_id"], "input": values},
        }
    )


def _notification_subscription(_ids: Ids) -> Definition:
    return Definition(
        {
            "event_type": "system.test",
            "action_type": "notification",
            "action_config": {
                "role": "tenant_admin",
                "title": "{{ event.data.text }}",
                "message": "{{ event.data.text | upper }}" * 300,
            },
        }
    )


def _test_event(_ids: Ids) -> Definition:
    return Definition({"event_type": "system.test", "data": {"note": "x", "text": "a " * 15_750}})


def _completion(ids: Ids) -> Definition:
    messages = [{"role": "user", "content": "x" * 900} for _ in range(1000)]
    return Definition({"model": ids["agent_id"], "messages": messages})


def _image(ids: Ids) -> Definition:
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(5_000_000)).decode()
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    return Definition(
        {"model": ids["agent_id"], "messages": [{"role": "user", "content": [image]}]}
    )


def _response(ids: Ids) -> Definition:
    items = [{"role": "user", "content": "x" * 900} for _ in range(1000)]
    return Definition({"model": ids["agent_id"], "input": items})


def _background_response(ids: Ids) -> Definition:
    return Definition({**_response(ids).body, "background": True})


def _many_embeddings(_ids: Ids) -> Definition:
    return Definition({"model": "local/wordllama", "input": ["word " * 117] * 2048})


def _long_embeddings(_ids: Ids) -> Definition:
    return Definition({"model": "local/wordllama", "input": ["word " * 8000] * 30})


def _agent(ids: Ids) -> Definition:
    return Definition(
        {
            "name": "Agent",
            "primary_model": ids["model"],
            "system_prompt": "a " * 50_000,
            "status": "published",
        },
        {
            "ChatRequest": {"message": "a " * 100_000},
            "PreviewRequest": {"message": "a " * 99_000, "draft": {"system_prompt": "a " * 50_000}},
            "OpenSession": {},
            "RetrievalEvaluationRequest": _evaluation(),
        },
    )


def _evaluation() -> dict[str, Any]:
    """Of the document of UPLOADS."""
    expected = {"document_name": "files.csv", "contains": "another sentence. " * 6}
    question = {"question": "sentence after " * 133, "expected": [expected] * 10}
    return {
        "questions": [question] * rounds(100, 200),
        "k": list(range(1, 21)),
        "changed_settings": {"max_passages": 20},
    }


def _batch(create: Callable[[Ids], Definition]) -> Callable[[Ids], Definition]:
    def build(ids: Ids) -> Definition:
        data = create(ids).body
        count = min(100, 1_000_000 // len(msgspec.json.encode(data)))
        operations = [
            {"action": "create", "data": {**data, "name": f"Batch {number}"}}
            for number in range(count)
        ]
        return Definition({"operations": operations})

    return build


def _channel(_ids: Ids) -> Definition:
    config = {
        "host": "127.0.0.1",
        "port": 9,
        "from": "Parley <parley@example.com>",
        "to": [f"user{number}@example.com" for number in range(50)],
    }
    return Definition({"name": "Channel", "type": "email", "provider": "smtp", "config": config})


def _embed_key(ids: Ids) -> Definition:
    domains = [f"shop{number}.example.com" for number in range(99)]
    return Definition(
        {
            "agent_id": ids["agent_id"],
            "name": "Key",
            "allowed_domains": [*domains, "*"],
            "allow_voice": True,
        }
    )


def _incoming_webhook(ids: Ids) -> Definition:
    return Definition({"name": "Incoming", "workflow_id": ids["workflow_id"]})


def _credential(_ids: Ids) -> Definition:
    return Definition(
        {
            "name": "Credential",
            "type": "bearer_token",
            "secrets": {"token": "x" * 5000},
            "metadata": {"test_url": "http://127.0.0.1:9/", "owner": "x" * 5000},
        }
    )


def _login(ids: Ids) -> Definition:
    return Definition({"email": ids["login_email"], "password": PASSWORD})


def _refresh(ids: Ids) -> Definition:
    return Definition({"refresh_token": ids["refresh_token"]})


# Contents of routes that read their bodies themselves.
CONTENTS: Final[dict[str, bytes]] = {
    "/webhooks/in/{slug}": msgspec.json.encode(
        [{"a": number, "b": {"c": "x" * 20}} for number in range(20_000)]
    )
}
# Files that are uploaded.
UPLOADS: Final[dict[str, bytes]] = {
    "/api/v1/agents/{agent_id}/attachments": b"text,label\nSome words,more of them\n" * 250_000,
    "/api/v1/agents/{agent_id}/train": b"One sentence after another. " * 40_000,
    "/api/v1/data-tables/{table_id}/import": b"text,label\n"
    + b"".join(b"t%d,%s\n" % (number, b"x" * 100) for number in range(rounds(5_000, 20_000))),
}

# Bodies of routes whose work takes seconds for the largest one.
SHORT_BODIES: Final[dict[str, dict[str, Any]]] = {
    "CreateSpeech": {
        "model": "local/espeak",
        "input": "Hello there. " * 10,
        "response_format": "wav",
    },
    "SpeakText": {"text": "Hello there. " * 10},
}

DEFINITIONS: Final[dict[str, tuple[Callable[[Ids], Definition], ...]]] = {
    "AgentBatch": (_batch(_agent),),
    "CompletionRequest": (_completion, _image),
    "CreateAgent": (_agent,),
    "CreateChannel": (_channel,),
    "CreateCredential": (_credential,),
    "CreateEmbedKey": (_embed_key,),
    "CreateForm": FORMS,
    "CreateIncoming": (_incoming_webhook,),
    "CreateSubscription": (
        _webhook_subscription,
        _workflow_subscription,
        _notification_subscription,
    ),
    "CreateTable": (_table,),
    "CreateTool": (_function, _rest_api, _database),
    "CreateWorkflow": (_large_values, _texts, _templates),
    "EmbeddingRequest": (_many_embeddings, _long_embeddings),
    "Login": (_login,),
    "Refresh": (_refresh,),
    "ResponseRequest": (_response, _background_response),
    "TestEvent": (_test_event,),
    "WorkflowBatch": (_batch(_large_values),),
}
