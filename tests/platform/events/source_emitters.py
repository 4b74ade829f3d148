"""Emits the events of sources."""

from typing import Any, Final

from tests.agents.sources.curator import Curator
from tests.agents.sources.web_site import open_web_site
from tests.platform.events.emitter_context import EmitterContext
from tests.platform.events.responses import post_json
from tests.platform.events.user_emitters import Emitter
from tests.running_worker import run_worker

_AGENT = {"name": "Agent", "primary_model": "openai/gpt-4o", "system_prompt": "Be."}


async def _sync_page(context: EmitterContext, path: str, **fields: Any) -> None:
    agent = await post_json(context.admin, "/api/v1/agents", _AGENT)
    curator = Curator(context.admin, agent["id"])
    async with (
        open_web_site() as site,
        run_worker(context.services.settings, "sources", slots=1),
    ):
        site.article("/hours", "Hours", "The shop opens at nine.")
        await curator.add_source("page", {"url": f"{site.url}{path}"}, **fields)


async def emit_source_synced(context: EmitterContext) -> None:
    await _sync_page(context, "/hours")


async def emit_source_changes_found(context: EmitterContext) -> None:
    await _sync_page(context, "/hours", apply="review")


async def emit_source_failed(context: EmitterContext) -> None:
    await _sync_page(context, "/missing")


EMITTERS: Final[dict[str, Emitter]] = {
    "system.source.synced": emit_source_synced,
    "system.source.changes_found": emit_source_changes_found,
    "system.source.failed": emit_source_failed,
}
