"""Limits how many resources of one type a tenant, or something of a tenant, has."""

from typing import Any

from sqlalchemy import ColumnElement, func, select

from app.kit.errors import Conflict
from db.session import Tx


async def check(
    tx: Tx,
    model: Any,
    limit: int,
    plural: str,
    *conditions: ColumnElement[bool],
    owner: str = "A tenant",
) -> None:
    """Raises Conflict when `limit` rows meet the conditions already."""
    count = select(func.count()).select_from(model).where(*conditions)
    if (await (await tx.session()).scalar(count) or 0) >= limit:
        raise Conflict(f"{owner} has at most {limit} {plural}; delete one first")
