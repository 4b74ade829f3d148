from typing import Annotated, Any, Literal

from litestar import Controller, get
from litestar.params import QueryParameter

from app.domain.events import catalogue, service, tracing
from app.domain.events.event import Event
from app.domain.events.queries import Filter
from app.domain.events.schemas import (
    Categories,
    Category,
    Entry,
    EventType,
    EventTypes,
    FullEventType,
    TraceView,
)
from app.http.errors import NotFound
from app.http.given import Id, Page, Tx
from app.http.paging import MOMENT, Flat, moment

CategoryName = Literal["agent", "workflow", "form", "approval", "data_table", "system"]
ShortText = Annotated[str | None, QueryParameter(max_length=200)]


class EventLogController(Controller):
    path = "/api/v1/event-log"
    tags = ["Events"]  # noqa: RUF012  # litestar's own type
    opt = {"needs": "events:read"}  # noqa: RUF012

    @get(summary="List events")
    async def list_events(
        self,
        tx: Tx,
        page_in: Page,
        event_type: ShortText = None,
        correlation_id: ShortText = None,
        since: Annotated[str | None, QueryParameter(name="from", schema_extra=MOMENT)] = None,
        until: Annotated[str | None, QueryParameter(name="to", schema_extra=MOMENT)] = None,
    ) -> Flat[Entry]:
        """The newest first, narrowed by type, time and correlation id. Beyond 5,000 the `total` is
        an estimate, and `estimated` says so.
        """
        wanted = Filter(event_type, correlation_id, moment("from", since), moment("to", until))
        return await service.entries(tx, wanted, page_in)

    @get("/{event_id:str}", summary="Get one event")
    async def get_event(self, tx: Tx, event_id: Id) -> Entry:
        return await service.entry(tx, event_id)

    @get("/trace/{correlation_id:str}", summary="Trace one chain of causes")
    async def get_trace(self, tx: Tx, correlation_id: Id) -> TraceView:
        """All events that share the correlation id, in order, and what ran for how long."""
        return await tracing.trace_of(tx, correlation_id)


class EventTypeNotFound(NotFound):
    code = "event_type_not_found"


def _described(event: type[Event]) -> tuple[str, str, str, dict[str, Any]]:
    category, schema = catalogue.category_of(event.type), catalogue.schema_of(event)
    return event.type, category, event.description, schema


class EventTypeController(Controller):
    path = "/api/v1/event-types"
    tags = ["Events"]  # noqa: RUF012
    opt = {"needs": "events:read"}  # noqa: RUF012

    @get(summary="List event types", sync_to_thread=False)
    def list_types(
        self,
        category: Annotated[CategoryName | None, QueryParameter(description="Only these")] = None,
    ) -> EventTypes:
        """Every type that there is, with the JSON Schema of its data."""
        wanted = [
            EventType(*_described(event))
            for name, event in sorted(catalogue.CATALOGUE.items())
            if category in {None, catalogue.category_of(name)}
        ]
        return EventTypes(wanted)

    @get("/categories", summary="List categories", sync_to_thread=False)
    def list_categories(self) -> Categories:
        names = [catalogue.category_of(name) for name in catalogue.CATALOGUE]
        return Categories(
            [
                Category(name, description, names.count(name))
                for name, description in catalogue.CATEGORIES.items()
            ]
        )

    @get("/{event_type:str}", summary="Get an event type", sync_to_thread=False)
    def get_type(self, event_type: Id) -> FullEventType:
        """Schema and documentation of one type, with an example."""
        event = catalogue.CATALOGUE.get(event_type)
        if event is None:
            raise EventTypeNotFound(f"There is no event type {event_type[:64]}")
        return FullEventType(*_described(event), catalogue.example_of(event))
