"""Answers of the same shape share a struct, and each has a schema with a name for readers."""

from litestar import Litestar

from app.http import openapi
from app.http.route_options import list_handlers
from tests.world import Client


async def test_shapes_of_answers_are_named_after_what_they_hold(anonymous: Client) -> None:
    schemas = (await anonymous.get("/openapi.json")).json()["components"]["schemas"]
    assert [name for name in schemas if not name.isalnum()] == []
    assert schemas["ToolData"]["example"] == {"data": schemas["ToolView"]["example"]}
    assert schemas["ToolSummaryPage"]["example"]["pagination"]["total_pages"] == 1
    shapes = [name for name in schemas if name.endswith(("Data", "List", "Page"))]
    assert [name for name in shapes if "example" not in schemas[name]] == []


async def test_tags_follow_the_groups_of_the_product(app: Litestar, anonymous: Client) -> None:
    document = (await anonymous.get("/openapi.json")).json()
    groups = {tag: group for group, tags in openapi.TAG_GROUPS.items() for tag in tags}
    assert [tag["name"] for tag in document["tags"]] == list(groups)
    for _, path, handler in list_handlers(app):
        module, tags = handler.fn.__module__, handler.resolve_tags()
        if module.startswith("app.domain."):
            group = module.split(".")[2]
            assert {groups[tag].lower() for tag in tags} == {group}, path
