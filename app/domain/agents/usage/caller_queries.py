"""Parts of statements that add up what callers used: users, service keys and embed keys.

Every part reads a common table expression of the statement that contains it.
"""

from typing import Final

_SUMMED: Final = (
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
    "turns",
    "conversations",
    "requests",
)
_COLUMNS: Final = ", ".join(_SUMMED)


def _add_sql(table: str, unit: str, value: str) -> str:
    sums = ", ".join(f"sum({name})" for name in _SUMMED)
    changes = ", ".join(f"{name} = c.{name} + excluded.{name}" for name in _SUMMED)
    return f"""
    INSERT INTO {table} AS c (tenant_id, {unit}, agent_id, caller_id, source, {_COLUMNS})
    SELECT tenant_id, {value}, agent_id, caller_id, source, {sums}
    FROM calls GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (tenant_id, {unit}, agent_id, caller_id, source) DO UPDATE SET {changes}"""


# Adds the rows of `calls` to their hours and days. Statements that run at the same time lock rows
# in the same order.
ADD: Final = f"""caller_hours AS ({_add_sql("usage_caller_hours", "hour", "hour")}
), caller_days AS (
    {_add_sql("usage_caller_days", "day", "(hour AT TIME ZONE 'UTC')::date")}
)"""

# Keeps the names of agents and keys, which reports show after they are deleted. Those of users are
# personal data, and go with the user.
ADD_NAMES: Final = """
    INSERT INTO usage_names AS n (tenant_id, id, name)
    SELECT DISTINCT ON (tenant_id, id) tenant_id, id, name FROM (
        SELECT a.tenant_id, a.id, a.name FROM agents a
        JOIN calls c ON c.agent_id = a.id AND c.tenant_id = a.tenant_id
        UNION ALL
        SELECT k.tenant_id, k.id, k.name FROM embed_keys k
        JOIN calls c ON c.caller_id = k.id AND c.tenant_id = k.tenant_id
        UNION ALL
        SELECT k.tenant_id, k.id, k.name FROM service_keys k
        JOIN calls c ON c.caller_id = k.id AND c.tenant_id = k.tenant_id
    ) known
    ORDER BY tenant_id, id
    ON CONFLICT (tenant_id, id) DO UPDATE SET name = excluded.name WHERE n.name <> excluded.name
"""
