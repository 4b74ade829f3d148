from typing import Final

from app.domain.area import Area
from app.security.permissions import DEVELOPERS, Permission
from app.services import Services
from db.storage_quota import UncountedTable

from .events import ProviderKeyCreated, ProviderKeyDeleted
from .gateway import Models


def _create_models(services: Services) -> tuple[Models]:
    guard, has_local = services.egress.guard, services.settings.local_model
    return (Models(guard, services.redis, has_local=has_local),)


AREA: Final = Area(
    name="llm",
    events=(ProviderKeyCreated, ProviderKeyDeleted),
    permissions=(
        Permission("models:read", "See usable models", DEVELOPERS),
        Permission("models:write", "Manage the keys of model providers"),
    ),
    shared=_create_models,
    tables=(UncountedTable("provider_keys", "at most 50 of a tenant"),),
)
