"""Types in TypeScript of the API, for the console: `python -m tests.web.console.api_types FILE`."""

import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import msgspec
from litestar import Litestar

from app.http import openapi
from app.kit import node
from tests.clients.document import create_documented_app

_TOOLS: Final = Path(__file__).parents[2] / "clients" / "tools"
# What the types do without, by the types of its values: the rest is a quarter of the document.
_UNUSED: Final[dict[str, type | tuple[type, ...]]] = {
    "description": str,
    "summary": str,
    "example": object,
    "examples": object,
    "headers": dict,
}


def generate(app: Litestar, target: Path) -> None:
    """Fields with a default may be left out of a body."""
    generator = node.install(_TOOLS) / "openapi-typescript" / "bin" / "cli.js"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "api.json"
        document = _strip(openapi.document(app))
        # The routes of a controller have another order in each process.
        document["paths"] = dict(sorted(document["paths"].items()))
        source.write_bytes(msgspec.json.encode(document))
        node.run(generator, source, "--output", target, "--default-non-nullable", "false")


def _strip(value: Any) -> Any:
    """Also removes errors, which have one shape."""
    if isinstance(value, list):
        return [*map(_strip, value)]
    if not isinstance(value, dict):
        return value
    return {
        key: _strip(item)
        for key, item in value.items()
        if not isinstance(item, _UNUSED.get(key, ())) and not _is_error(key)
    }


def _is_error(key: str) -> bool:
    return len(key) == 3 and key.isdigit() and not key.startswith("2")


if __name__ == "__main__":
    generate(create_documented_app(), Path(sys.argv[1]))
