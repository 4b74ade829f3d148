"""How many of a kind a tenant may have."""

from typing import Any

from sqlalchemy import ColumnElement, func, select

from app.kit.errors import Conflict
from db.session import Tx


async def check(tx: Tx, model: Any, most: int, what: str, *theirs: ColumnElement[bool]) -> None:
    """Refuses one more than `most` of the rows that `theirs` names."""
    count = select(func.count()).select_from(model).where(*theirs)
    if (await (await tx.session()).scalar(count) or 0) >= most:
        raise Conflict(f"A tenant has at most {most} {what}; delete one first")
