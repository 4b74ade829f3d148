from typing import Final

from app.domain.area import Area
from app.domain.search.engines.registry import SearchEngines

AREA: Final = Area(
    name="search",
    shared=lambda services: (SearchEngines(services.egress, services.settings.searxng_url),),
)
