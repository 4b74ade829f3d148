"""The examples of the API reference: complete for every operation, and right against a server."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jsonschema_rs
import msgspec
import pytest
from litestar import Litestar

from app.http import openapi
from app.kit import node
from app.web.console_build import SOURCE
from tests.agents.knowledge.sample_pdfs import make_pdf
from tests.model_server import ModelServer
from tests.openapi.document import Document, list_operations, resolve
from tests.scripted_agents import talker
from tests.server import Server
from tests.world import Client, World

_RUNNER = Path(__file__).with_name("reference_examples.mjs")
_BASE = "https://parley.example/sub"
# Operations whose examples are run, and what their answers have: JSON, multipart and a stream.
_RUN = {
    "create_agent": "Shop assistant",
    "attach_file": "handbook.pdf",
    "chat_stream": "message_stop",
}


@pytest.fixture(scope="module")
def document(app: Litestar) -> Document:
    return openapi.document(app)


@pytest.fixture(scope="module")
def built(document: Document, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("reference") / "openapi.json"
    path.write_bytes(msgspec.json.encode(document))
    result: dict[str, Any] = json.loads(node.run(_RUNNER, SOURCE, path, _BASE))
    return result


@pytest.fixture(scope="module")
def examples(built: dict[str, Any]) -> dict[str, dict[str, Any]]:
    examples: dict[str, dict[str, Any]] = built["examples"]
    return examples


class Curl:
    """A command, as a shell would split it."""

    def __init__(self, command: str) -> None:
        words = iter(shlex.split(command.replace(" \\\n", " ")))
        assert next(words) == "curl"
        self.method, self.url = "", ""
        self.options: list[str] = []
        self.headers: dict[str, str] = {}
        self.data: str | None = None
        self.parts: list[tuple[str, str]] = []
        for word in words:
            self._take(word, words)
        self.method = self.method or ("GET" if self.data is None and not self.parts else "POST")

    def _take(self, word: str, words: Iterator[str]) -> None:
        if not word.startswith("-"):
            assert not self.url, "two addresses"
            self.url = word
        elif word == "-X":
            self.method = next(words)
        elif word == "-H":
            name, value = next(words).split(": ", 1)
            self.headers[name.lower()] = value
        elif word == "-d":
            self.data = next(words)
        elif word == "-F":
            name, value = next(words).split("=", 1)
            self.parts.append((name, value))
        else:
            self.options.append(word if word == "-N" else f"{word} {next(words)}")


def test_every_operation_has_examples_in_each_language(
    examples: dict[str, dict[str, Any]], document: Document
) -> None:
    names = {operation["operationId"] for _, _, operation in list_operations(document)}
    assert examples.keys() == names
    for name, example in examples.items():
        # JavaScript was checked when it was written.
        compile(example["python"], name, "exec")


def test_every_command_has_what_its_operation_requires(
    examples: dict[str, dict[str, Any]], document: Document, subtests: pytest.Subtests
) -> None:
    for name, path, operation in list_operations(document):
        with subtests.test(name):
            curl = Curl(examples[operation["operationId"]]["curl"])
            url = urlsplit(curl.url)
            assert curl.method == name.split()[0]
            assert _matches(url.path.removeprefix("/sub"), path)
            required = _list_required(operation)
            assert required["query"] <= parse_qs(url.query).keys()
            assert required["header"] <= curl.headers.keys()
            is_secured = any(
                "key_" not in scheme for item in operation["security"] for scheme in item
            )
            assert ("authorization" in curl.headers) is is_secured


def _matches(path: str, template: str) -> bool:
    parts, names = path.split("/"), template.split("/")
    return len(parts) == len(names) and all(
        part == name or (name.startswith("{") and part and "{" not in part)
        for part, name in zip(parts, names, strict=True)
    )


def _list_required(operation: dict[str, Any]) -> dict[str, set[str]]:
    required: dict[str, set[str]] = {"path": set(), "query": set(), "header": set()}
    for parameter in operation.get("parameters", []):
        if parameter.get("required"):
            name = parameter["name"]
            required[parameter["in"]].add(name.lower() if parameter["in"] == "header" else name)
    return required


def test_every_body_is_valid(
    examples: dict[str, dict[str, Any]], document: Document, subtests: pytest.Subtests
) -> None:
    for name, _, operation in list_operations(document):
        curl = Curl(examples[operation["operationId"]]["curl"])
        content = operation.get("requestBody", {}).get("content", {})
        with subtests.test(name):
            if "multipart/form-data" in content:
                schema = resolve(document, content["multipart/form-data"]["schema"])
                assert {*schema["required"]} <= {part for part, _ in curl.parts}
                assert "content-type" not in curl.headers
            elif content:
                schema = {**content["application/json"]["schema"], **_definitions(document)}
                assert curl.data is not None
                jsonschema_rs.validate(schema, json.loads(curl.data))
            else:
                assert not curl.data
                assert curl.parts == []


def _definitions(document: Document) -> dict[str, Any]:
    return {"components": document["components"]}


def test_streams_and_files_are_read_as_such(examples: dict[str, dict[str, Any]]) -> None:
    stream = examples["chat_stream"]
    assert Curl(stream["curl"]).options == ["-N"]
    assert "httpx.stream(" in stream["python"]
    assert "TextDecoderStream" in stream["javascript"]
    file = examples["export_rows"]
    assert Curl(file["curl"]).options == ["-o rows.csv"]
    assert ".write_bytes(response.content)" in file["python"]
    assert "writeFile(" in file["javascript"]
    upload = Curl(examples["upload_form_file"]["curl"])
    # The server reads the file while it arrives, and needs the other fields before.
    assert [name for name, _ in upload.parts] == ["field_id", "file"]
    assert upload.parts[-1][1].startswith("@")


def test_a_search_looks_in_summaries_paths_names_and_codes(built: dict[str, Any]) -> None:
    found: dict[str, list[str]] = built["found"]
    assert found["create_agent"][0] == "create_agent"
    assert {"chat_stream", "preview_agent"} >= {found["chat stream"][0]}
    assert "chat_stream" in found["agent_archived"]
    assert "delete_tenant" in found["DELETE tenant"]
    assert found["   "] == found["(*"] == []


async def test_examples_run_as_they_are(
    examples: dict[str, dict[str, Any]],
    developer: Client,
    world: World,
    models: ModelServer,
    server: Server,
    tmp_path: Path,
    subtests: pytest.Subtests,
) -> None:
    """With the address and the ids of this instance."""
    talk = await talker(world, models, client=developer)
    (tmp_path / "handbook.pdf").write_bytes(make_pdf(["The shop opens at 9."]))
    for name, expected in _RUN.items():
        for dialect in ("curl", "python", "javascript"):
            with subtests.test(f"{name} in {dialect}"):
                code = examples[name][dialect].replace(_BASE, server.url)
                code = code.replace("agt_01k9x3m7e8c0v2q4r6t8w0y2a4", talk.agent_id)
                # The scripted model answers on this event loop.
                output = await asyncio.to_thread(_run, dialect, code, developer.token, tmp_path)
                assert expected in output


def _run(dialect: str, code: str, token: str | None, folder: Path) -> str:
    file = folder / f"example.{dialect}"
    if dialect == "javascript":
        file = file.with_suffix(".mjs")
    file.write_text(code, encoding="utf-8")
    program = {
        "curl": ["bash", str(file)],
        "python": [sys.executable, str(file)],
        "javascript": [str(node.NODE), str(file)],
    }[dialect]
    result = subprocess.run(
        program,
        cwd=folder,
        env={**os.environ, "PARLEY_TOKEN": token or ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout
