"""Statements find the same limits of a tenant as the code does."""

from typing import Any

import msgspec
import pytest

from app.security.plans import PLANS, Plan, limit_sql, plan_of
from app.services import Services
from tests.database import fetch_rows

_OWN: list[dict[str, Any]] = [
    {},
    {"storage_mb": 7, "events_days": 1},
    {"storage_mb": 0, "conversations_days": None},
]


async def test_a_limit_is_the_same_in_statements(
    services: Services, subtests: pytest.Subtests
) -> None:
    for plan in PLANS:
        for own in _OWN:
            with subtests.test(plan=plan, own=own):
                names = (
                    "storage_mb",
                    *(name for name in Plan.__struct_fields__ if name.endswith("_days")),
                )
                columns = ", ".join(f"{limit_sql(name, 't')} AS {name}" for name in names)
                source = "(SELECT $1::text AS plan, $2::jsonb AS limits) t"
                limits = msgspec.json.encode(own).decode()
                (row,) = await fetch_rows(services, f"SELECT {columns} FROM {source}", plan, limits)
                assert row == {name: getattr(plan_of(plan, own), name) for name in names}
