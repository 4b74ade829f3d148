"""The console is checked against the API as it is."""

from pathlib import Path

from app.web.console_build import SOURCE
from tests.web.console import api_types
from tests.world import World


def test_the_types_are_those_of_the_document(product: World, tmp_path: Path) -> None:
    target = tmp_path / "schema.d.ts"
    api_types.generate(product.app, target)
    stored = (SOURCE / "src" / "api" / "schema.d.ts").read_text(encoding="utf-8")
    assert target.read_text(encoding="utf-8") == stored, "run ./scripts/console-types"
