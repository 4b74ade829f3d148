"""GET /api/v1/settings: what configures the instance and the tenant, and where it comes from."""

import re
from typing import Any

from app.domain.platform.settings import service
from app.settings import Settings, as_env, load, load_descriptions
from tests.assertions import refused
from tests.processes import ROOT
from tests.world import Client, World

PATH = "/api/v1/settings"
# Set by `serve` for its own processes.
_INTERNAL = {"metrics_dir", "set_names"}
_ROW = re.compile(r"\| ((?:`PARLEY_\w+`(?:, )?)+) \| .*? \| (.*) \|")


async def _list(client: Client, **more: Any) -> dict[str, dict[str, Any]]:
    answer = await client.get(PATH, **more)
    assert answer.status_code == 200, answer.text
    return {view["name"]: view for view in answer.json()["data"]}


def test_every_setting_is_described_as_in_the_documentation() -> None:
    described = {
        name: text for group in load_descriptions().values() for name, text in group.items()
    }
    assert set(described) == set(Settings.__struct_fields__) - _INTERNAL
    documented = {
        variable.lower(): meaning.replace("`", "")
        for names, meaning in _ROW.findall((ROOT / "docs/configuration.md").read_text())
        for variable in re.findall(r"PARLEY_(\w+)", names)
    }
    assert described == documented


def test_every_setting_that_may_have_a_password_is_a_secret() -> None:
    names = set(Settings.__struct_fields__)
    assert names >= service.SECRETS | service.OF_TENANTS
    with_password = {
        name for name in names if name.endswith(("_url", "_uri", "_keys", "_password"))
    }
    assert with_password - {"base_url", "searxng_url"} == service.SECRETS


def test_variables_that_a_parent_passes_on_are_defaults() -> None:
    settings = load({"PARLEY_PORT": "8001", "PARLEY_HOST": ""}, default_plan="enterprise")
    assert settings.set_names == {"port"}
    child = load(as_env(settings))
    assert child.set_names == {"port"}
    assert child.default_plan == "enterprise"
    assert child.port == 8001


def test_settings_are_shown_with_their_source_and_without_secrets() -> None:
    settings = Settings(
        smtp_url="smtp://me:hunter2@mail.example.com",
        egress_allow=("10.0.0.0/8",),
        set_names=frozenset({"smtp_url", "egress_allow"}),
    )
    views = {view.name: view for view in service.list_of_instance(settings, is_all=True)}
    smtp = views["smtp_url"]
    assert (smtp.value, smtp.is_secret, smtp.is_set) == (None, True, True)
    assert (smtp.source, smtp.variable) == ("environment", "PARLEY_SMTP_URL")
    assert views["egress_allow"].value == ["10.0.0.0/8"]
    assert (views["log_level"].source, views["log_level"].is_editable) == ("default", False)
    assert (views["allow_signup"].value, views["allow_signup"].effective) == ("auto", True)
    assert (views["master_keys"].value, views["master_keys"].is_set) == (None, False)
    assert "hunter2" not in str(views)


async def test_super_admin_sees_all_settings(super_admin: Client) -> None:
    views = await _list(super_admin)
    assert set(views) >= set(Settings.__struct_fields__) - _INTERNAL
    assert views["master_keys"]["value"] is None


async def test_a_tenant_admin_sees_what_concerns_the_tenant(world: World) -> None:
    limits = {"requests_per_minute": 77}
    admin = await world.user("tenant_admin", await world.tenant(limits=limits))
    views = await _list(admin)
    of_instance = {name for name, view in views.items() if view["scope"] == "instance"}
    assert of_instance == service.OF_TENANTS
    assert "egress_allow" not in views
    assert "data_dir" not in views
    own, other = views["requests_per_minute"], views["storage_mb"]
    assert (own["value"], own["source"]) == (77, "database")
    assert (other["source"], views["plan"]["value"]) == ("default", "enterprise")


async def test_super_admin_sees_the_limits_of_the_selected_tenant(
    world: World, super_admin: Client
) -> None:
    tenant_id = await world.tenant("pro")
    views = await _list(super_admin, headers={"x-tenant-id": tenant_id})
    assert views["plan"]["value"] == "pro"


async def test_roles_without_the_permission_see_no_settings(world: World) -> None:
    for role in ("agent_developer", "agent_user", "viewer"):
        refused(await (await world.user(role)).get(PATH), 403, "forbidden")
