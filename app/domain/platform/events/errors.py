from app.kit.errors import NotFound


class EventNotFound(NotFound, code="event_not_found"): ...


class EventTypeNotFound(NotFound, code="event_type_not_found"): ...


class TraceNotFound(NotFound, code="trace_not_found"): ...
