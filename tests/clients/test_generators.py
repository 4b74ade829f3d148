"""Others generate clients from /openapi.json with the tools that they have."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.kit import node
from tests.clients import generators
from tests.clients.generators import PACKAGE, ToolError
from tests.server import Server
from tests.world import World

# Packages are downloaded once.
pytestmark = pytest.mark.timeout(300)

_USAGE = Path(__file__).with_name("usage.py")
_INFO = {"title": "Shop", "version": "1"}
_NAMED = {"application/json": {"schema": {"$ref": "#/components/schemas/shop.Item"}}}
_UNKNOWN = {"image/gif": {"schema": {"type": "string", "format": "binary"}}}


@pytest.fixture
async def document(world: World, tmp_path: Path) -> Path:
    path = tmp_path / "openapi.json"
    path.write_bytes((await world.anonymous().get("/openapi.json")).content)
    return path


@pytest.mark.parametrize("tool", sorted(generators.CHECKS.keys() - {"python"}))
def test_a_tool_accepts_the_document(document: Path, tmp_path: Path, tool: str) -> None:
    assert generators.CHECKS[tool](document, tmp_path)


async def test_a_generated_client_calls_the_interface(
    world: World, server: Server, document: Path, tmp_path: Path
) -> None:
    generators.generate_python_client(document, tmp_path)
    assert (tmp_path / PACKAGE / "api" / "agents" / "create_agent.py").exists()
    token = (await world.user("agent_developer")).token or ""
    _use_client(tmp_path, server.url, token)


def _use_client(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-W", "error", str(_USAGE), *arguments]
    env = {"PYTHONPATH": str(folder)}
    result = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_what_a_tool_complains_about_is_reported(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for tool, document, complaint in [
        ("validator", {"openapi": "3.1.0", "info": _INFO}, "is not valid"),
        ("redocly", _describe({}), "security-defined"),
        ("python", _describe(_UNKNOWN), "image/gif"),
        ("pydantic", _describe(_NAMED), "Modular references"),
        ("typescript", _describe({}), "Property 'CreateAgent' does not exist"),
    ]:
        with subtests.test(tool=tool):
            folder = tmp_path / tool
            folder.mkdir()
            path = folder / "openapi.json"
            path.write_text(json.dumps(document))
            with pytest.raises((ToolError, node.NodeError), match=complaint):
                generators.CHECKS[tool](path, folder)


def _describe(content: dict[str, Any]) -> dict[str, Any]:
    responses = {"200": {"description": "OK", "content": content}}
    operation = {"operationId": "get_item", "tags": ["shop"], "responses": responses}
    schemas = {"shop.Item": {"type": "object", "properties": {"id": {"type": "string"}}}}
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "paths": {"/item": {"get": operation}},
        "components": {"schemas": schemas},
    }
