"""POST /api/v1/incoming-webhooks: fields, slugs and quota."""

import re

import pytest

from app.domain.automation.incoming import queries
from app.services import Services
from tests.assertions import refused
from tests.automation.incoming.api import PATH, read_field_error
from tests.automation.incoming.factories import SECRET, build_slug, create_webhook, submit_payload
from tests.automation.subscriptions.factories import create_draft
from tests.world import Client, World

FIELDS = {
    "id",
    "name",
    "slug",
    "url",
    "workflow_id",
    "active",
    "verification",
    "created_at",
    "updated_at",
}


async def test_a_name_is_enough(developer: Client, services: Services) -> None:
    answer = await developer.post(PATH, {"name": "Orders of the shop"})
    assert answer.status_code == 201
    webhook = answer.json()
    assert set(webhook) == FIELDS
    assert re.fullmatch(r"inh_[0-9a-z]{26}", webhook["id"])
    assert webhook["name"] == "Orders of the shop"
    assert webhook["url"] == f"{services.settings.public_url}/webhooks/in/{webhook['slug']}"
    assert (webhook["active"], webhook["workflow_id"], webhook["verification"]) == (
        True,
        None,
        None,
    )
    assert webhook["created_at"].endswith("Z")
    assert webhook["updated_at"] >= webhook["created_at"]


async def test_every_field_is_stored(developer: Client) -> None:
    fields = {
        "name": "Ünïcode ✓ 注文",
        "slug": build_slug(developer),
        "workflow_id": await create_draft(developer),
        "active": False,
        "verification": {"scheme": "hmac_sha256", "secret": SECRET, "header": "X-Shop-Signature"},
    }
    webhook = await create_webhook(developer, **fields)
    assert (await developer.get(f"{PATH}/{webhook['id']}")).json() == webhook
    masked = {"scheme": "hmac_sha256", "secret": "********", "header": "X-Shop-Signature"}
    assert {name: webhook[name] for name in fields} == {**fields, "verification": masked}


async def test_a_generated_slug_has_the_name_and_a_random_suffix(developer: Client) -> None:
    slugs = [(await create_webhook(developer, name="Orders & Töne!"))["slug"] for _ in range(5)]
    assert all(re.fullmatch(r"orders-t-ne-[0-9a-z]{16}", slug) for slug in slugs)
    assert len({slug[-16:] for slug in slugs}) == 5


async def test_a_slug_is_generated_from_any_name(
    world: World, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for name in ("注文", "!!!", "x" * 100, "-a-"):
        with subtests.test(name=name):
            developer = await world.user()
            webhook = await create_webhook(developer, name=name)
            assert re.fullmatch(r"[a-z0-9][a-z0-9-]{10,78}[a-z0-9]", webhook["slug"])
            await submit_payload(anonymous, webhook)


async def test_a_slug_may_be_short_and_long(
    world: World, anonymous: Client, subtests: pytest.Subtests
) -> None:
    for slug in ("abc", "a" * 80, "a-b_c-1", "000"):
        with subtests.test(slug=slug):
            developer = await world.user()
            webhook = await create_webhook(developer, slug=slug)
            assert webhook["slug"] == slug
            await submit_payload(anonymous, webhook)
            assert (await developer.delete(f"{PATH}/{webhook['id']}")).status_code == 204


_INVALID_SLUGS: list[object] = [
    "ab",
    "a" * 81,
    "",
    "Orders",
    "a b c",
    "a/b",
    "../x",
    "-abc",
    "abc-",
    "_abc",
    "äöü",
    "abc\n",
    "abc\n-",
    "a%2fb",
    "a.b",
    "abc?",
    7,
    ["abc"],
    {},
    True,
]


async def test_an_invalid_slug_is_refused(developer: Client, subtests: pytest.Subtests) -> None:
    for slug in _INVALID_SLUGS:
        with subtests.test(slug=slug):
            await read_field_error(developer, "slug", {"name": "Orders", "slug": slug})


async def test_a_slug_is_unique_across_tenants(developer: Client, admin: Client) -> None:
    webhook = await create_webhook(developer, slug=build_slug(developer))
    for caller in (developer, admin):
        error = refused(
            await caller.post(PATH, {"name": "Again", "slug": webhook["slug"]}), 409, "conflict"
        )
        assert webhook["id"] not in str(error)


async def test_the_slug_of_a_deleted_webhook_can_be_used_again(
    developer: Client, admin: Client
) -> None:
    webhook = await create_webhook(developer, slug=build_slug(developer))
    await developer.delete(f"{PATH}/{webhook['id']}")
    assert (await create_webhook(admin, slug=webhook["slug"]))["slug"] == webhook["slug"]


_INVALID_NAMES: list[object] = [None, "", "   ", "a\nb", "a\0b", "x" * 101, 7, [], {}]


async def test_an_invalid_name_is_refused(developer: Client, subtests: pytest.Subtests) -> None:
    for name in _INVALID_NAMES:
        with subtests.test(name=name):
            assert await read_field_error(developer, "name", {"name": name})


async def test_a_name_is_required(developer: Client) -> None:
    assert await read_field_error(developer, "name", {}) == "is required"


_INVALID_FIELDS: list[tuple[str, object]] = [
    ("active", "yes"),
    ("active", None),
    ("active", 1),
    ("workflow_id", 7),
    ("workflow_id", ""),
    ("workflow_id", "x" * 101),
    ("verification", "github"),
    ("verification", []),
]


async def test_a_field_of_the_wrong_type_is_named(
    developer: Client, subtests: pytest.Subtests
) -> None:
    for field, value in _INVALID_FIELDS:
        with subtests.test(field=field, value=value):
            assert await read_field_error(developer, field, {"name": "Orders", field: value})


async def test_a_body_must_be_an_object(world: World, subtests: pytest.Subtests) -> None:
    cases: list[object] = [None, [], "x", 7, [{"name": "Orders"}]]
    for body in cases:
        with subtests.test(body=body):
            developer = await world.user()
            refused(await developer.post(PATH, body), 422, "validation_error")


async def test_other_fields_cannot_be_set(developer: Client, admin: Client) -> None:
    fields = {
        "id": "inh_mine",
        "url": "https://evil.example",
        "created_at": "2020-01-01T00:00:00Z",
    }
    webhook = await create_webhook(developer, **fields)
    assert webhook["id"] != "inh_mine"
    assert webhook["url"].endswith(f"/webhooks/in/{webhook['slug']}")
    assert not webhook["created_at"].startswith("2020")
    assert (await admin.get(f"{PATH}/{webhook['id']}")).status_code == 404


async def test_a_tenant_has_a_limited_number_of_webhooks(
    developer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MAX_WEBHOOKS", 2)
    await create_webhook(developer)
    await create_webhook(developer)
    refused(await developer.post(PATH, {"name": "Third"}), 409, "conflict")
