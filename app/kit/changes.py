"""Writing the fields of a row that differ."""

from typing import Any


def apply_changes(row: Any, values: dict[str, Any]) -> list[str]:
    """Sets the values that differ from the row's; returns their names."""
    changed = [name for name, value in values.items() if getattr(row, name) != value]
    for name in changed:
        setattr(row, name, values[name])
    return changed
