"""SQL of web search configs."""

from app.domain.search.schemas import WebSearchConfigView
from db.fast import tenant_of
from db.models import WebSearchConfig
from db.session import Tx
from db.views import View

_DEFAULTS = WebSearchConfigView()
_VIEW = View(
    WebSearchConfigView,
    enabled=f"coalesce(w.enabled, {_DEFAULTS.enabled})",
    search_engine=f"coalesce(w.search_engine, '{_DEFAULTS.search_engine}')",
    max_results=f"coalesce(w.max_results, {_DEFAULTS.max_results})",
    safe_search=f"coalesce(w.safe_search, {_DEFAULTS.safe_search})",
)
_FIND_VIEW = f"""
SELECT {_VIEW.columns}
FROM agents a
LEFT JOIN web_search_configs w ON w.agent_id = a.id AND w.tenant_id = a.tenant_id
WHERE ($1::text IS NULL OR a.tenant_id = $1) AND a.id = $2
"""


async def find_view(tx: Tx, agent_id: str) -> WebSearchConfigView | None:
    """Returns the agent's config or the defaults; None when there is no such agent."""
    return await _VIEW.find(tx, tenant_of(tx), _FIND_VIEW, agent_id)


async def find(tx: Tx, agent_id: str) -> WebSearchConfig | None:
    return await (await tx.session()).get(WebSearchConfig, agent_id)
