"""Reads rows as msgspec structs, without the ORM.

A view has one SELECT list and builds one struct from a row. Nested structs come as JSON, so that
`json_agg` reads what belongs to a row in the same statement.
"""

from typing import Any, Generic, TypeVar, get_args

import msgspec

from db import fast
from db.fast import Row
from db.session import Tx

T = TypeVar("T", bound=msgspec.Struct)


class View(Generic[T]):
    """The columns of a struct. A field's column has its name, unless `expressions` has other SQL
    for it; `computed` fields have no column and are passed to `build`.
    """

    def __init__(
        self,
        struct: type[T],
        table: str = "",
        *,
        computed: tuple[str, ...] = (),
        **expressions: str,
    ) -> None:
        prefix = f"{table}." if table else ""
        fields = [f for f in msgspec.structs.fields(struct) if f.name not in computed]
        self._struct = struct
        self._names = [field.name for field in fields]
        self._nested = {f.name: f.type for f in fields if _contains_struct(f.type)}
        self.columns = ", ".join(
            f"{expressions[name]} AS {name}" if name in expressions else prefix + name
            for name in self._names
        )

    def build(self, row: Row, **computed: object) -> T:
        values = {name: row[name] for name in self._names}
        for name, kind in self._nested.items():
            values[name] = msgspec.convert(values[name], kind)
        return self._struct(**values, **computed)

    async def find(self, tx: Tx, tenant: str | None, sql: str, *args: object) -> T | None:
        row = await fast.row(tx, tenant, sql, *args)
        return None if row is None else self.build(row)

    async def list(self, tx: Tx, tenant: str | None, sql: str, *args: object) -> list[T]:
        return [self.build(row) for row in await fast.rows(tx, tenant, sql, *args)]


def _contains_struct(kind: Any) -> bool:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return True
    return any(_contains_struct(part) for part in get_args(kind))
