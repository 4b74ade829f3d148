"""Builds the report on all limits of a tenant."""

import asyncio
from datetime import UTC, timedelta
from typing import Any, Final

import msgspec

from app.context import RequestContext
from app.domain.area import Areas
from app.domain.platform.storage import api as storage
from app.kit import clock
from app.security.errors import TenantNotFound
from app.security.plans import plan_of
from db.fast import tenant_of

from . import headroom
from .limit_queries import read_limits
from .schemas import CountedLimit, EmbedKeyBudget, LimitsReport, VisitorKinds, VisitorLimits

# Each kind has limits of its own; see `Visit` of the tenants' area.
_KINDS: Final = ("embed", "forms", "incoming")


async def build_limits_report(context: RequestContext) -> LimitsReport:
    """The limits are those of the caller's own tenant, or of the one that super_admin selected."""
    tx, services, tenant_id = context.tx, context.services, context.principal.home
    # Before the transaction takes a connection.
    subjects = (tenant_id, *(f"{kind}:{tenant_id}" for kind in _KINDS))
    read = (headroom.read_state(services.redis, subject) for subject in subjects)
    state, *of_visitors = await asyncio.gather(*read)
    row = await read_limits(tx, tenant_of(tx), tenant_id)
    if row is None:
        raise TenantNotFound(f"There is no tenant {tenant_id[:64]}")
    plan = plan_of(row["plan"], msgspec.json.decode(row["limits"]))
    load = await services.get(Areas).load_executions(tx, tenant_id)
    stored = await storage.get_limit(tx, tenant_id)
    limits = headroom.build_limits(row["plan"], plan, state, load, stored)
    visitors = [VisitorLimits(*headroom.build_windows(plan, known)) for known in of_visitors]
    midnight = clock.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return LimitsReport(
        **{name: getattr(limits, name) for name in limits.__struct_fields__},
        visitors=VisitorKinds(*visitors),
        data_rows=_count(plan.data_rows or None, row["data_rows"]),
        embed_keys=[_build_budget(key) for key in row["embed_keys"]],
        budgets_reset=midnight + timedelta(days=1),
    )


def _build_budget(key: dict[str, Any]) -> EmbedKeyBudget:
    return EmbedKeyBudget(
        key["id"],
        key["name"],
        key["agent_id"],
        _count(key["max_messages_per_day"], key["messages"]),
        _count(key["max_tokens_per_day"], key["tokens"]),
    )


def _count(limit: int | None, used: int) -> CountedLimit:
    return CountedLimit(limit, used, None if limit is None else max(0, limit - used))
