from litestar import Controller, Response, post
from litestar.params import JSONBody

from app.http.dependencies import Context, HttpRequest, Id
from app.http.disconnect import while_connected
from app.http.sse import MEDIA_TYPE, EventStream

from . import previews
from .preview_schemas import PreviewRequest
from .sse_encoding import EVENTS, encode_stream


class PreviewController(Controller):
    path = "/api/v1/agents/{agent_id:str}/preview"
    tags = ["Chat"]

    @post(
        summary="Preview an agent, streamed",
        needs="agents:write",
        cost="chat",
        status_code=200,
        idempotent=False,
        errors=(400, 502),
        media_type=MEDIA_TYPE,
        events=EVENTS,
    )
    async def preview_agent(
        self, request: HttpRequest, context: Context, agent_id: Id, data: JSONBody[PreviewRequest]
    ) -> Response[bytes]:
        """One turn with a state of the agent that is not stored: the fields of `draft`, and the
        agent as it is for the rest. The agent does not change, and its status does not matter. The
        events are those of `…/chat/stream`. The conversation is kept with the source `preview`. Its
        tokens and costs count as those of every turn; it emits no events, is not in the agent's
        log, and does not count in the agent's statistics of conversations. Tools really run.
        """
        connection = while_connected(request)
        events = await previews.stream(context, agent_id, data, connection)
        shows_costs = context.principal.may("usage:read")
        return EventStream(encode_stream(events, shows_costs=shows_costs))
