"""The figures of a form, counted from its rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date

from app.domain.forms.definition.api import list_inputs, live, rate
from app.jobs.counters import BufferedCounter
from app.kit import clock, logs
from app.services import Services
from db.fast import tenant_of
from db.session import ALL_TENANTS, Database, Scope

from . import analytics_queries
from . import analytics_queries as queries
from .analytics_queries import DayCount, FieldCount
from .analytics_schemas import FieldDropOff, FormAnalytics, SubmissionsOfDay

_MAX_SOURCES = 10
_MAX_DROP_OFFS = 20


async def compute(services: Services, scope: Scope, form_id: str) -> FormAnalytics:
    async with services.db.tx(scope, autocommit=True) as tx:
        form = await live.find(tx, tenant_of(tx), form_id)
        tenant_id = form.tenant_id
        views = await queries.count_views(tx, tenant_id, form_id)
        counts = await queries.count_submissions(tx, tenant_id, form_id, _MAX_SOURCES)
        stops = await queries.group_by_stop(tx, tenant_id, form_id)
        numbers = {count.version for count in counts.fields}
        inputs = await list_inputs(tx, tenant_id, form_id, sorted(numbers))
    total = sum(day.count for day in counts.days)
    return FormAnalytics(
        total_submissions=total,
        total_views=views,
        conversion_rate=rate(total, views),
        avg_completion_time_seconds=_average_time(counts.days),
        submissions_by_day=[SubmissionsOfDay(day.day, day.count) for day in counts.days],
        top_sources=counts.sources,
        field_completion_rates=compute_completion(inputs, counts.fields),
        drop_off_fields=compute_drop_off(
            {row["field_id"]: row["count"] for row in stops}, submissions=total
        ),
    )


def _average_time(days: Sequence[DayCount]) -> float | None:
    timed = sum(day.timed for day in days)
    return round(sum(day.seconds for day in days) / timed, 2) if timed else None


def compute_completion(
    inputs: Mapping[int, Sequence[str]], counts: Sequence[FieldCount]
) -> dict[str, float]:
    """Returns rates in the order of fields, those of the newest version first. `inputs` are the ids
    of the fields of each version that are answered.
    """
    answered: Counter[str] = Counter()
    submitted: Counter[str] = Counter()
    for count in sorted(counts, key=lambda item: (-item.version, item.position)):
        field_id = inputs[count.version][count.position - 1]
        submitted[field_id] += count.submitted
        answered[field_id] += count.answered
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


log = logs.get("forms")

# A form and a day.
_Key = tuple[str, str, date]


class ViewCounter(BufferedCounter[_Key]):
    """The views that this process has counted. One that is killed loses those of its last seconds;
    one that stops stores them first.
    """

    def __init__(self, db: Database, every_seconds: float = 3.0) -> None:
        super().__init__(every_seconds)
        self._db = db

    def add_view(self, tenant_id: str, form_id: str) -> None:
        """Does not wait for the database."""
        self.add((tenant_id, form_id, clock.now().astimezone(UTC).date()))

    async def save(self, counts: Counter[_Key]) -> None:
        async with self._db.tx(ALL_TENANTS, autocommit=True) as tx:
            await analytics_queries.add_views(tx, counts)
