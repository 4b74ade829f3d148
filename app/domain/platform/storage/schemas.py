from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta


class StoredBytes(msgspec.Struct):
    """What a tenant stores, in bytes. Files are the uploads to the API and to forms, profile
    pictures and the originals of documents; `knowledge` has the texts and vectors of documents,
    `payloads` what incoming webhooks received and what endpoints answered to deliveries,
    `definitions` the agents, tools, workflows and forms with all their versions, and
    `history` the changes of records.
    """

    example: ClassVar[dict[str, Any]] = {
        "files": 71303168,
        "knowledge": 1048576,
        "conversations": 524288,
        "executions": 262144,
        "events": 131072,
        "payloads": 65536,
        "forms": 32768,
        "tables": 24576,
        "definitions": 8192,
        "history": 4096,
    }

    files: int = 0
    knowledge: int = 0
    conversations: int = 0
    executions: int = 0
    events: int = 0
    payloads: int = 0
    forms: int = 0
    tables: int = 0
    definitions: int = 0
    history: int = 0


class RetentionDays(msgspec.Struct):
    """After how many days history is deleted. What an agent's log settings delete earlier is
    deleted earlier.
    """

    example: ClassVar[dict[str, Any]] = {
        "events": 90,
        "test_events": 7,
        "payloads": 90,
        "executions": 90,
        "conversations": 1095,
    }

    events: int
    test_events: int
    payloads: int
    executions: int
    conversations: int


class StorageLimit(msgspec.Struct):
    """What the tenant may store, and what it stores; `limit_bytes` and `remaining_bytes` are null
    without a limit. All but files are counted within seconds.
    """

    example: ClassVar[dict[str, Any]] = {
        "limit_bytes": 10737418240,
        "used_bytes": 73400320,
        "remaining_bytes": 10664017920,
        "by_kind": StoredBytes.example,
        "retention_days": RetentionDays.example,
    }

    limit_bytes: int | None
    used_bytes: int
    remaining_bytes: int | None
    by_kind: StoredBytes
    retention_days: RetentionDays


class StorageView(msgspec.Struct):
    """What the tenant stores. `file_bytes` are those of files, documents and profile pictures
    included. Without a limit, `limit_bytes` is null.
    """

    example: ClassVar[dict[str, Any]] = {
        "used_bytes": 734003200,
        "limit_bytes": 1073741824,
        "file_bytes": 731906048,
        "file_count": 1204,
    }

    used_bytes: Annotated[int, Meta(description="Everything that counts toward the quota")]
    limit_bytes: int | None
    file_bytes: int
    file_count: int
