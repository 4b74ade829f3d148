from typing import Annotated

from litestar import Controller, get
from litestar.params import QueryParameter

from app.domain.events import service
from app.domain.events.queries import Filter
from app.domain.events.schemas import Entry, TraceView
from app.http.given import Id, Page, Tx
from app.http.paging import MOMENT, Flat, moment

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
        """The newest first, narrowed by type, time and correlation id."""
        wanted = Filter(event_type, correlation_id, moment("from", since), moment("to", until))
        return await service.entries(tx, wanted, page_in)

    @get("/{event_id:str}", summary="Get one event")
    async def get_event(self, tx: Tx, event_id: Id) -> Entry:
        return await service.entry(tx, event_id)

    @get("/trace/{correlation_id:str}", summary="Trace one chain of causes")
    async def get_trace(self, tx: Tx, correlation_id: Id) -> TraceView:
        """All events that share the correlation id, in order, and what ran for how long."""
        return await service.trace_of(tx, correlation_id)
