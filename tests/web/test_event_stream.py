"""Server-sent events, as the scripts of our pages read them."""

from app.kit import sse
from tests.web.module_runner import ModuleRunner

_READ = """async ({ readEvents }, chunks) => {
    const body = new ReadableStream({
        start(controller) {
            for (const chunk of chunks) controller.enqueue(new Uint8Array(chunk));
            controller.close();
        },
    });
    const events = [];
    for await (const event of readEvents(new Response(body))) events.push(event);
    return events;
}"""
_STREAM = b"".join(
    [
        sse.comment("still here"),
        sse.event("message_start", b'{"id":"1"}'),
        sse.event("content_delta", '{"delta":" Zo\u00eb \U0001f30d\u2028x: y"}'.encode(), "7"),
        b"event: windows\r\ndata: [1,\r\ndata: 2]\r\n\r\n",
        # The connection ends in the middle of an event.
        b'event: message_stop\ndata: {"id"',
    ]
)
_EVENTS = [
    {"event": "message_start", "data": {"id": "1"}},
    {"event": "content_delta", "data": {"delta": " Zo\u00eb \U0001f30d\u2028x: y"}},
    {"event": "windows", "data": [1, 2]},
]


_IS_CANCELLED = """({ readEvents }) => new Promise(async (resolve) => {
    const body = new ReadableStream({
        pull: (controller) => controller.enqueue(new TextEncoder().encode("data: 1\\n\\n")),
        cancel: () => resolve(true),
    });
    for await (const event of readEvents(new Response(body))) break;
})"""


def test_events_are_read_wherever_the_chunks_end(modules: ModuleRunner) -> None:
    for size in (1, 2, 7, 1000):
        chunks = [list(_STREAM[start : start + size]) for start in range(0, len(_STREAM), size)]
        assert modules.evaluate("shared/event-stream.js", _READ, chunks) == _EVENTS


def test_a_reader_that_stops_ends_the_stream(modules: ModuleRunner) -> None:
    assert modules.evaluate("shared/event-stream.js", _IS_CANCELLED) is True
