"""Declares which rows count toward the storage quota of their tenant, and with how many bytes.

Each area declares its own tables. Triggers count the rows: a migration creates them, and
`tests/platform/storage/test_declarations.py` compares them with what is declared.
"""

from typing import Final, Literal

import msgspec

# What a row takes besides its content: its header, ids, times and index entries.
ROW_BYTES: Final = 256

Kind = Literal[
    "conversations",
    "definitions",
    "events",
    "executions",
    "forms",
    "history",
    "knowledge",
    "payloads",
    "tables",
]


class CountedTable(msgspec.Struct, frozen=True):
    """A table whose rows count, listed under `kind` to the tenant.

    `content` is the SQL of the bytes of a row, aliased `t`, besides `ROW_BYTES`. It depends on the
    row alone, so that a deletion subtracts what was added. `changes` is the condition, on OLD and
    NEW, of updates that change these bytes; it is empty where no update does.

    With `from_end`, a row counts once its `finished_at` is set: until then it changes often.
    `rows` is 2 where each row has one in an uncounted table.
    """

    table: str
    kind: Kind
    content: str
    changes: str = ""
    from_end: bool = False
    rows: int = 1

    @property
    def size(self) -> str:
        size = f"{ROW_BYTES * self.rows} + {self.content}"
        return f"CASE WHEN t.finished_at IS NULL THEN 0 ELSE {size} END" if self.from_end else size

    @property
    def update_condition(self) -> str:
        ends = "OLD.finished_at IS NOT NULL OR NEW.finished_at IS NOT NULL"
        return ends if self.from_end else self.changes


class UncountedTable(msgspec.Struct, frozen=True):
    """A table whose rows do not count, and why."""

    table: str
    reason: str


TableQuota = CountedTable | UncountedTable

# Tables that belong to no area.
PLATFORM_TABLES: Final[tuple[TableQuota, ...]] = (
    UncountedTable("idempotency_keys", "deleted after 24 hours"),
    UncountedTable("attempts", "belongs to the instance, not to a tenant"),
    UncountedTable("instance_state", "belongs to the instance, not to a tenant"),
)
