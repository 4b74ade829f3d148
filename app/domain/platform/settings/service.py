"""What configures the instance and the tenant, and where it comes from."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from app.context import RequestContext
from app.security.errors import TenantNotFound
from app.security.plans import Plan, plan_of
from app.settings import PREFIX, Settings, load_descriptions
from db.fast import tenant_of

from . import queries
from .schemas import SettingView, SettingViews

# They are, or may have, passwords and keys.
SECRETS: Final = frozenset(
    {
        *("database_url", "redis_url", "smtp_url", "files_uri", "lancedb_uri"),
        *("master_keys", "admin_password"),
    }
)
# What a tenant's admins see of the instance.
OF_TENANTS: Final = frozenset(
    {
        *("base_url", "allow_signup", "default_plan", "demo", "mail_from", "smtp_url"),
        *("local_model", "embedding_model", "sentence_encoders", "transcription_model"),
        *("speech_model", "searxng_url", "webhook_retry_delays", "form_submissions_per_minute"),
        *("form_upload_mb_per_day", "anonymous_per_minute", "max_body_mb", "max_file_mb"),
    }
)
_GROUP_OF_TENANT: Final = "Tenant"
_PLAN_TEXT: Final = "the plan of the tenant, which has its limits"


async def list_settings(context: RequestContext) -> SettingViews:
    tenant_id = context.principal.home
    row = await queries.find_plan(context.tx, tenant_of(context.tx), tenant_id)
    if row is None:
        raise TenantNotFound(f"There is no tenant {tenant_id[:64]}")
    settings, is_all = context.services.settings, context.principal.is_super_admin
    views = list(list_of_instance(settings, is_all=is_all))
    limits: dict[str, Any] = msgspec.json.decode(row["limits"])
    views += _list_of_tenant(row["plan"], limits)
    return SettingViews(views)


def list_of_instance(settings: Settings, *, is_all: bool) -> Iterator[SettingView]:
    effective = {"allow_signup": settings.is_signup_open, "base_url": settings.public_url}
    for group, descriptions in load_descriptions().items():
        for name, description in descriptions.items():
            if not is_all and name not in OF_TENANTS:
                continue
            value, is_secret = getattr(settings, name), name in SECRETS
            is_set = name in settings.set_names
            yield SettingView(
                name=name,
                scope="instance",
                group=group,
                description=description,
                value=None if is_secret else _to_json(value),
                effective=effective.get(name),
                is_secret=is_secret,
                is_set=bool(value) if is_secret else is_set,
                source="environment" if is_set else "default",
                variable=PREFIX + name.upper(),
            )


def _list_of_tenant(plan_name: str, limits: dict[str, Any]) -> Iterator[SettingView]:
    yield SettingView(
        name="plan",
        scope="tenant",
        group=_GROUP_OF_TENANT,
        description=_PLAN_TEXT,
        value=plan_name,
        is_set=True,
        source="database",
    )
    plan, of_plan = plan_of(plan_name, limits), plan_of(plan_name, {})
    for name in Plan.__struct_fields__:
        is_own = getattr(plan, name) != getattr(of_plan, name) or name in limits
        yield SettingView(
            name=name,
            scope="tenant",
            group=_GROUP_OF_TENANT,
            description=f"{name.replace('_', ' ')}; 0 means no limit",
            value=getattr(plan, name),
            is_set=is_own,
            source="database" if is_own else "default",
        )


def _to_json(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
