from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from app.kit.validation import ONE_LINE

ViewKind = Literal[
    "agents",
    "approvals",
    "conversations",
    "credentials",
    "data_tables",
    "deliveries",
    "documents",
    "events",
    "executions",
    "forms",
    "notifications",
    "service_keys",
    "submissions",
    "tools",
    "usage",
    "users",
    "webhooks",
    "work",
    "workflow_executions",
    "workflows",
]
ViewName = Annotated[str, Meta(min_length=1, max_length=100, pattern=ONE_LINE)]
Filters = Annotated[
    dict[
        Annotated[str, Meta(min_length=1, max_length=64)],
        Annotated[str, Meta(max_length=500)],
    ],
    Meta(max_length=30, description="Query parameters of the list, as texts"),
]
IsShared = Annotated[
    bool, Meta(description="Everybody of the tenant sees it; you and administrators change it")
]

_VIEW: dict[str, Any] = {
    "kind": "conversations",
    "name": "Failed this week",
    "filters": {"failed": "true", "source": "embed"},
    "is_shared": True,
}


class CreateSavedView(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = _VIEW

    kind: Annotated[ViewKind, Meta(description="The list that it is a view of")]
    name: ViewName
    filters: Filters
    is_shared: IsShared = False


class UpdateSavedView(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"name": "Failed", "filters": {"failed": "true"}}

    name: ViewName | msgspec.UnsetType = msgspec.UNSET
    filters: Filters | msgspec.UnsetType = msgspec.UNSET
    is_shared: IsShared | msgspec.UnsetType = msgspec.UNSET


class SavedViewView(msgspec.Struct):
    """`user_id` is the owner. A shared view stays when its owner is deleted."""

    example: ClassVar[dict[str, Any]] = {
        "id": "viw_01k9x3m7e8c0v2q4r6t8w0y2a4",
        **_VIEW,
        "user_id": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "created_at": "2026-01-01T12:00:00Z",
        "updated_at": "2026-01-01T12:00:00Z",
    }

    id: str
    kind: ViewKind
    name: str
    filters: dict[str, str]
    is_shared: bool
    user_id: str
    created_at: datetime
    updated_at: datetime
