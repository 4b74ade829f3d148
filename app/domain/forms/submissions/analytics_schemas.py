from datetime import date
from typing import Any, ClassVar

import msgspec


class SubmissionsOfDay(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"date": "2026-01-01", "count": 4}

    date: date
    count: int


class SubmissionSource(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"source": "embed", "count": 9}

    source: str
    count: int


class FieldDropOff(msgspec.Struct):
    example: ClassVar[dict[str, Any]] = {"field_id": "budget", "drop_off_rate": 12.5}

    field_id: str
    drop_off_rate: float


class FormAnalytics(msgspec.Struct):
    """Rates are percentages from 0 to 100. `field_completion_rates` has the share of submissions
    with an answer to a field, among those of versions that have the field. `drop_off_fields` has
    the share of all starts (submissions, drafts, conversations) that ended at a field. Days are in
    UTC; a day without submissions is left out. The average time leaves out submissions whose start
    is not known.
    """

    example: ClassVar[dict[str, Any]] = {
        "total_submissions": 12,
        "total_views": 48,
        "conversion_rate": 25.0,
        "avg_completion_time_seconds": 73.5,
        "submissions_by_day": [SubmissionsOfDay.example],
        "top_sources": [SubmissionSource.example],
        "field_completion_rates": {"name": 100.0, "budget": 33.33},
        "drop_off_fields": [FieldDropOff.example],
    }

    total_submissions: int
    total_views: int
    conversion_rate: float
    avg_completion_time_seconds: float | None
    submissions_by_day: list[SubmissionsOfDay]
    top_sources: list[SubmissionSource]
    field_completion_rates: dict[str, float]
    drop_off_fields: list[FieldDropOff]
