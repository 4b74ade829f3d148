from litestar import Controller, get, post, put
from litestar.params import JSONBody

from app.http.dependencies import Context, Id, Tx
from app.http.records import Record, lock_row

from . import service
from .schemas import UpdateWebSearchConfig, WebSearchConfigView

_CONFIG = Record(lock_row("agents", id="agent_id"), "get_web_search_config")


class WebSearchController(Controller):
    path = "/api/v1/agents/{agent_id:str}/websearch"
    tags = ["Web search"]

    @get("/config", summary="Get the web search config", needs="agents:write")
    async def get_web_search_config(self, tx: Tx, agent_id: Id) -> WebSearchConfigView:
        return await service.get_config(tx, agent_id)

    @put("/config", summary="Change the web search config", needs="agents:write", record=_CONFIG)
    async def update_web_search_config(
        self, context: Context, agent_id: Id, data: JSONBody[UpdateWebSearchConfig]
    ) -> WebSearchConfigView:
        """Any subset of the fields. An enabled search whose engine lacks its address or key is
        refused with 409 `search_engine_not_configured`.
        """
        return await service.update_config(context, agent_id, data)

    @post(
        "/enable",
        summary="Enable web search",
        needs="agents:write",
        status_code=200,
        record=_CONFIG,
    )
    async def enable_web_search(self, context: Context, agent_id: Id) -> WebSearchConfigView:
        """Offers the function `web_search` to the agent's model. What it finds are the `sources`
        of the reply.
        """
        return await service.set_enabled(context, agent_id, enabled=True)

    @post(
        "/disable",
        summary="Disable web search",
        needs="agents:write",
        status_code=200,
        record=_CONFIG,
    )
    async def disable_web_search(self, context: Context, agent_id: Id) -> WebSearchConfigView:
        return await service.set_enabled(context, agent_id, enabled=False)
