"""The definition of a field, as authors write it and as versions of forms store it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.kit import validation
from app.kit.validation import NOT_BLANK

from .options import Option
from .registry import FIELD_TYPES

ID = r"^(?![\s\S]*\n)[A-Za-z][A-Za-z0-9_-]{0,63}$"
validation.describe_pattern(
    ID, "must start with a letter and have up to 64 letters, digits, underscores and dashes"
)

# The names in the registry; a type checker cannot read them from there.
if TYPE_CHECKING:
    FieldTypeName = str
else:
    FieldTypeName = Literal[tuple(FIELD_TYPES)]
Operator = Literal["equals", "not_equals", "contains", "gt", "lt", "is_empty", "is_not_empty", "in"]
# How many a group has is checked with the fields.
Conditions = Annotated["list[Conditional]", Meta(max_length=100)]
FieldId = Annotated[str, Meta(pattern=ID, description="The key of the answer in submitted data")]


class DataSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options are the rows of a data table."""

    example: ClassVar[dict[str, Any]] = {
        "type": "data_table",
        "table_id": "tbl_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "value_column": "code",
        "label_column": "name",
    }

    type: Literal["data_table"] = "data_table"
    table_id: Annotated[str, Meta(min_length=1, max_length=100)]
    value_column: Annotated[str, Meta(min_length=1, max_length=100)]
    label_column: Annotated[str, Meta(min_length=1, max_length=100)]


class Conditional(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The field is shown while the answer to another one meets this condition: `field`, `operator`
    and `value`. Instead of these, `all` or `any` has several conditions, nested up to 3 deep and at
    most 20 in all.
    """

    example: ClassVar[dict[str, Any]] = {
        "field": "topic",
        "operator": "equals",
        "value": "sales",
    }

    field: FieldId | UnsetType = UNSET
    operator: Operator | UnsetType = UNSET
    value: Any = UNSET
    all: Conditions | UnsetType = UNSET
    any: Conditions | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.value is UNSET and self.field is not UNSET:
            msgspec.structs.force_setattr(self, "value", None)

    @property
    def source(self) -> str:
        """The id of the field that a single condition is about."""
        return self.field or ""

    @property
    def parts(self) -> "list[Conditional]":
        """The conditions of a group; empty for a single condition."""
        return (self.all or []) + (self.any or [])

    def list_single(self) -> "Iterator[Conditional]":
        """Yields the conditions that are not groups."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.list_single()


class Field(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which keys `validation` has depends on the type: `GET /api/v1/form-field-types` has them."""

    example: ClassVar[dict[str, Any]] = {
        "id": "email",
        "type": "email",
        "label": "Your e-mail address",
        "required": True,
    }

    id: FieldId
    type: FieldTypeName
    label: Annotated[str, Meta(min_length=1, max_length=2000, pattern=NOT_BLANK)]
    placeholder: Annotated[str, Meta(max_length=200)] = ""
    required: bool = False
    validation: dict[str, Any] = {}
    options: Annotated[list[Option], Meta(max_length=500)] = []
    data_source: DataSource | None = None
    help_text: Annotated[str, Meta(max_length=1000)] = ""
    conditional: Conditional | None = None
