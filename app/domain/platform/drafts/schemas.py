from datetime import datetime
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from app.kit.json_diff import Change

Note = Annotated[str, Meta(max_length=500, description="What changed, for the list of versions")]


class DraftState(msgspec.Struct):
    """Where a draft stands. `changes` lead from the record as it is now to the draft; long texts
    are cut, and `truncated` says that there are more changes.
    """

    example: ClassVar[dict[str, Any]] = {
        "saved_by": "usr_01k9x3m7e8c0v2q4r6t8w0y2a4",
        "saved_at": "2026-01-01T12:00:00Z",
        "based_on": 1,
        "is_outdated": False,
        "changes": [{"path": "temperature", "op": "changed", "before": 0.7, "after": 0.2}],
        "truncated": False,
    }

    saved_by: str | None
    saved_at: datetime
    based_on: Annotated[int, Meta(description="The version of the record when the draft began")]
    is_outdated: Annotated[
        bool, Meta(description="Whether the record has changed since the draft began")
    ]
    changes: list[Change]
    truncated: bool


class PublishDraft(msgspec.Struct, kw_only=True):
    example: ClassVar[dict[str, Any]] = {"note": "Opens at nine on Sundays, too"}

    note: Note = ""
    overwrite: Annotated[
        bool, Meta(description="Also when the record has changed since the draft began")
    ] = False
    saved_at: Annotated[
        datetime | None, Meta(description="Only the draft that was saved then: its `saved_at`")
    ] = None
