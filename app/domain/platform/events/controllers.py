from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Literal

import msgspec
from litestar import Controller, get
from litestar.params import QueryParameter

from app.domain.area import Areas
from app.http.dependencies import Id, Page, Principal, Services, Tx
from app.http.paging import From, To, parse_time
from app.http.sse import MEDIA_TYPE, EventStream
from app.kit import sse
from app.kit.paging import Flat
from app.security.principal import Principal as _Principal
from app.services import Services as _Services

from . import catalogue, live, service, tracing
from .live import LiveEvents
from .queries import Filter
from .schemas import Categories, Entry, EventTypes, FullEventType, NewEvents, TraceView

CategoryName = Literal["agent", "workflow", "form", "approval", "data_table", "system"]
ShortText = Annotated[str | None, QueryParameter(max_length=200)]


class EventLogController(Controller):
    path = "/api/v1/event-log"
    tags = ["Events"]
    opt = {"needs": "events:read"}

    @get(summary="List events")
    async def list_events(
        self,
        tx: Tx,
        page_in: Page,
        event_type: ShortText = None,
        correlation_id: ShortText = None,
        since: From = None,
        until: To = None,
    ) -> Flat[Entry]:
        """The newest first, filtered by type, time and correlation id. Beyond 5,000 events `total`
        is an estimate, and `estimated` is true.
        """
        filters = Filter(
            event_type, correlation_id, parse_time("from", since), parse_time("to", until)
        )
        return await service.list_page(tx, filters, page_in)

    @get(
        "/stream",
        summary="Stream what happens",
        media_type=MEDIA_TYPE,
        events={"events": NewEvents},
    )
    async def stream_event_log(self, services: Services, principal: Principal) -> EventStream:
        """Server-sent events: `events` with the types of the events that were recorded since the
        one before, at most one each second. It tells when to read something again; the list of
        events has the rest. The stream ends with the session, and after an hour: connect again
        then.
        """
        services.get(LiveEvents).check_streams(principal.user_id)
        return EventStream(_encode(services, principal), is_endless=True)

    @get("/{event_id:str}", summary="Get one event")
    async def get_event(self, tx: Tx, event_id: Id) -> Entry:
        return await service.get(tx, event_id)

    @get("/trace/{correlation_id:str}", summary="Trace one chain of causes")
    async def get_trace(
        self, tx: Tx, services: Services, principal: Principal, correlation_id: Id
    ) -> TraceView:
        """All events that share the correlation id, in order, and what ran for how long. Input,
        output and error are for callers who may see them elsewhere.
        """
        return await tracing.get_trace(tx, services.get(Areas), principal, correlation_id)


async def _encode(services: _Services, principal: _Principal) -> AsyncGenerator[bytes, None]:
    async with aclosing(live.stream(services, principal)) as batches:
        async for types in batches:
            if types:
                yield sse.event("events", msgspec.json.encode(NewEvents(types)))
            else:
                yield sse.comment("connected")


class EventTypeController(Controller):
    path = "/api/v1/event-types"
    tags = ["Events"]
    opt = {"needs": "events:read"}

    @get(summary="List event types", sync_to_thread=False)
    def list_event_types(
        self,
        services: Services,
        category: Annotated[
            CategoryName | None, QueryParameter(description="Only types of this category")
        ] = None,
    ) -> EventTypes:
        """Every event type, with the JSON Schema of its data."""
        return catalogue.list_types(services.get(Areas), category)

    @get("/categories", summary="List categories", sync_to_thread=False)
    def list_event_categories(self, services: Services) -> Categories:
        return catalogue.list_categories(services.get(Areas))

    @get("/{event_type:str}", summary="Get an event type", sync_to_thread=False)
    def get_event_type(self, services: Services, event_type: Id) -> FullEventType:
        """Schema and documentation of one type, with an example."""
        return catalogue.get_type(services.get(Areas), event_type)
