"""Rules of retention whose periods are limits of plans."""

from typing import Final

from app.security.plans import limit_sql
from db.retention import BATCH, RetentionRule

# For `per` of a rule: the agents, with the days that their log settings and the plan allow.
AGENTS: Final = f"""
(SELECT g.id, g.tenant_id, least(g.retention_days, {limit_sql("conversations_days", "x")})
        AS retention_days
 FROM agents g JOIN tenants x ON x.id = g.tenant_id) a"""


def by_plan(
    limit: str, table: str, column: str, condition: str = "", *, batch: int = BATCH
) -> RetentionRule:
    """Returns a rule for rows whose period, in days, is a limit of their tenant's plan. `column`
    has their time; an index starts with the tenant and this column.
    """
    rest = f" AND {condition}" if condition else ""
    return RetentionRule(
        table,
        f"t.tenant_id = p.id AND t.{column} < now() - p.days * interval '1 day'{rest}",
        order_by=f"t.{column}",
        per=f"(SELECT x.id, {limit_sql(limit, 'x')} AS days FROM tenants x) p",
        batch=batch,
    )
