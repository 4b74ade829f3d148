"""Answers of the same shape share a struct, and each has a schema with a name for readers."""

from tests.world import Client


async def test_shapes_of_answers_are_named_after_what_they_hold(anonymous: Client) -> None:
    schemas = (await anonymous.get("/openapi.json")).json()["components"]["schemas"]
    assert [name for name in schemas if not name.isalnum()] == []
    assert schemas["ToolData"]["example"] == {"data": schemas["ToolView"]["example"]}
    assert schemas["ToolSummaryPage"]["example"]["pagination"]["total_pages"] == 1
    shapes = [name for name in schemas if name.endswith(("Data", "List", "Page"))]
    assert [name for name in shapes if "example" not in schemas[name]] == []
