"""The figures of a form, counted from its rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date

import msgspec

from app.domain.forms import analytics_queries as queries
from app.domain.forms import live
from app.domain.forms.analytics_schemas import (
    FieldDropOff,
    FormAnalytics,
    SubmissionsOfDay,
    SubmissionSource,
)
from app.domain.forms.definitions import FormDefinition
from app.domain.forms.service import rate
from app.services import Services
from db.fast import Row, tenant_of
from db.session import Scope

_MAX_SOURCES = 10
_MAX_DROP_OFFS = 20


class AnswerGroup(msgspec.Struct, frozen=True):
    """Submissions of one version that answer the same fields."""

    version: int
    answered: str
    count: int


async def compute(services: Services, scope: Scope, form_id: str) -> FormAnalytics:
    async with services.db.tx(scope, autocommit=True) as tx:
        form = await live.find(tx, tenant_of(tx), form_id)
        tenant_id = form.tenant_id
        views = await queries.count_views(tx, tenant_id, form_id)
        days = await queries.group_by_day(tx, tenant_id, form_id)
        rows = await queries.group_by_answers(tx, tenant_id, form_id)
        stops = await queries.group_by_stop(tx, tenant_id, form_id)
    groups = [AnswerGroup(row["version"], row["answered"], row["count"]) for row in rows]
    versions = {
        version: await live.load_definition(services, form, version)
        for version in {group.version for group in groups}
    }
    total = sum(row["count"] for row in days)
    return FormAnalytics(
        total_submissions=total,
        total_views=views,
        conversion_rate=rate(total, views),
        avg_completion_time_seconds=_average_time(days),
        submissions_by_day=_count_days(days),
        top_sources=_count_sources(days),
        field_completion_rates=compute_completion(versions, groups),
        drop_off_fields=compute_drop_off(
            {row["field_id"]: row["count"] for row in stops}, submissions=total
        ),
    )


def _average_time(days: Sequence[Row]) -> float | None:
    timed = sum(row["timed"] for row in days)
    return round(sum(row["seconds"] or 0 for row in days) / timed, 2) if timed else None


def _count_days(days: Sequence[Row]) -> list[SubmissionsOfDay]:
    counts: Counter[date] = Counter()
    for row in days:
        counts[row["day"]] += row["count"]
    return [SubmissionsOfDay(day, counts[day]) for day in sorted(counts)]


def _count_sources(days: Sequence[Row]) -> list[SubmissionSource]:
    """The most frequent first; those with the same number in the order of their names."""
    counts: Counter[str] = Counter()
    for row in days:
        counts[row["source"]] += row["count"]
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [SubmissionSource(source, count) for source, count in ordered[:_MAX_SOURCES]]


def compute_completion(
    versions: Mapping[int, FormDefinition], groups: Sequence[AnswerGroup]
) -> dict[str, float]:
    answered: Counter[str] = Counter()
    submitted: Counter[str] = Counter()
    for group in groups:
        fields = versions[group.version].inputs
        for field, mark in zip(fields, group.answered, strict=False):
            submitted[field.id] += group.count
            if mark == "1":
                answered[field.id] += group.count
    return {field_id: rate(answered[field_id], submitted[field_id]) for field_id in submitted}


def compute_drop_off(stops: Mapping[str | None, int], *, submissions: int) -> list[FieldDropOff]:
    """The highest rates first. A draft that has all its answers ended at no field."""
    starts = submissions + sum(stops.values())
    rates = [
        FieldDropOff(field_id, rate(count, starts))
        for field_id, count in stops.items()
        if field_id is not None
    ]
    rates.sort(key=lambda item: (-item.drop_off_rate, item.field_id))
    return rates[:_MAX_DROP_OFFS]
