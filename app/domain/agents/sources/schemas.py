from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from app.domain.agents.knowledge.schemas import DocumentChange
from app.kit.validation import ONE_LINE

from .kinds.protocol import SourceType
from .schedules import ScheduleName

SourceStatus = Literal["pending", "syncing", "ready", "review", "retrying", "failed"]
ApplyMode = Literal["automatic", "review"]
ChangeType = Literal["added", "changed", "removed"]

_TAIL = "01k9x3m7e8c0v2q4r6t8w0y2a4"
_CONFIG = {"url": "https://example.com/help"}
_SOURCE = {
    "id": f"src_{_TAIL}",
    "agent_id": f"agt_{_TAIL}",
    "name": "Help pages",
    "type": "page",
    "config": _CONFIG,
    "has_secrets": False,
    "schedule": "daily",
    "apply": "automatic",
    "max_documents": 200,
    "include": ["/help/*"],
    "exclude": [],
    "document": {"visibility": "public", "tags": ["help"]},
    "status": "ready",
    "error": None,
    "failed_count": 0,
    "last_synced_at": "2026-01-02T12:00:00Z",
    "next_sync_at": "2026-01-03T12:00:00Z",
    "last_sync": {"added": 2, "changed": 5, "removed": 1, "left_out": 0, "skipped": 1},
    "document_count": 84,
    "change_count": 0,
    "problems": [
        {
            "url": "https://example.com/help/video",
            "problem": "is video/mp4; PDF, DOCX or HTML files are read",
        }
    ],
    "created_at": "2026-01-01T12:00:00Z",
    "updated_at": "2026-01-01T12:00:00Z",
}

Name = Annotated[str, Meta(max_length=100, pattern=ONE_LINE)]
Config = Annotated[
    dict[str, Any],
    Meta(description="Where the documents are, by the keys that the type has"),
]
Secrets = Annotated[
    dict[str, str],
    Meta(description="The keys of the type that are secret. They are stored sealed, never shown"),
]
MaxDocuments = Annotated[int, Meta(ge=1, le=1000)]
Patterns = Annotated[
    list[Annotated[str, Meta(max_length=200, pattern=ONE_LINE)]],
    Meta(
        max_length=20,
        description="Patterns of whole paths, like `/help/*`; `*` stands for any characters",
    ),
]


class CreateSource(msgspec.Struct, kw_only=True):
    """`apply` says whether changes are applied as soon as they are found, or after a review.
    `document` has what new documents of the source get: visibility, tags and so on.
    """

    example: ClassVar[dict[str, Any]] = {
        "name": "Help pages",
        "type": "page",
        "config": {"url": "https://example.com/help"},
        "schedule": "daily",
    }

    name: Name
    type: SourceType
    config: Config
    secrets: Secrets = {}
    schedule: ScheduleName = "daily"
    apply: ApplyMode = "automatic"
    max_documents: MaxDocuments = 200
    include: Patterns = []
    exclude: Patterns = []
    document: DocumentChange | UnsetType = UNSET


class ChangeSource(msgspec.Struct, kw_only=True):
    """`config` and `secrets` replace the stored ones. A `config` that leads to another server needs
    the `secrets` again. What `document` sets, all documents of the source get at once.
    """

    example: ClassVar[dict[str, Any]] = {"schedule": "weekly"}

    name: Name | UnsetType = UNSET
    config: Config | UnsetType = UNSET
    secrets: Secrets | UnsetType = UNSET
    schedule: ScheduleName | UnsetType = UNSET
    apply: ApplyMode | UnsetType = UNSET
    max_documents: MaxDocuments | UnsetType = UNSET
    include: Patterns | UnsetType = UNSET
    exclude: Patterns | UnsetType = UNSET
    document: DocumentChange | UnsetType = UNSET


class SyncCounts(msgspec.Struct):
    """What a sync found. `left_out` are documents beyond `max_documents`, and `skipped` those that
    could not be read.
    """

    added: int
    changed: int
    removed: int
    left_out: int
    skipped: int


class SourceProblem(msgspec.Struct):
    url: str
    problem: str


class DocumentSourceView(msgspec.Struct):
    """`error` says why the last sync failed. After several failures in a row `status` is `failed`;
    until then it is `retrying`. `change_count` are the changes that wait for a review. `problems`
    has some of the documents that could not be read.
    """

    example: ClassVar[dict[str, Any]] = _SOURCE

    id: str
    agent_id: str
    name: str
    type: SourceType
    config: dict[str, Any]
    has_secrets: bool
    schedule: ScheduleName
    apply: ApplyMode
    max_documents: int
    include: list[str]
    exclude: list[str]
    document: DocumentChange
    status: SourceStatus
    error: str | None
    failed_count: int
    last_synced_at: datetime | None
    next_sync_at: datetime | None
    last_sync: SyncCounts
    document_count: int
    change_count: int
    problems: list[SourceProblem]
    created_at: datetime
    updated_at: datetime


class SourceChangeView(msgspec.Struct):
    """`document_id` is the document that would be replaced or deleted."""

    example: ClassVar[dict[str, Any]] = {
        "id": f"sre_{_TAIL}",
        "change": "changed",
        "url": "https://example.com/help/opening-hours",
        "name": "Opening hours.html",
        "document_id": f"doc_{_TAIL}",
        "found_at": "2026-01-02T12:00:00Z",
    }

    id: str
    change: ChangeType
    url: str
    name: str
    document_id: str | None
    found_at: datetime
