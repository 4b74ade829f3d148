"""Models with the default key of the tenant's provider."""

import pytest

from app.domain.agents.llm import api as service
from app.domain.agents.llm.errors import ModelNotConfigured
from app.domain.agents.llm.gateway import Models
from app.services import Services
from tests.model_server import ModelServer
from tests.scripted_agents import give_key
from tests.world import World


async def test_a_target_has_the_default_key_of_its_own_tenant(
    world: World, services: Services, models: ModelServer
) -> None:
    owner, stranger = await world.user("tenant_admin"), await world.user("tenant_admin")
    await give_key(owner, models)
    async with services.db.tx(owner.tenant_id, autocommit=True) as tx:
        ids = (owner.tenant_id, "scripted/ear")
        target = await service.load_target(tx, services.keyring, *ids)
    assert (target.model, target.provider) == ("scripted/ear", "scripted")
    assert (target.api_key, target.base_url) == ("sk-scripted-0123456789", models.url)
    async with services.db.tx(stranger.tenant_id, autocommit=True) as tx:
        ids = (stranger.tenant_id, "scripted/ear")
        target = await service.load_target(tx, services.keyring, *ids)
    assert (target.api_key, target.base_url) == ("", None)
    with pytest.raises(ModelNotConfigured):
        services.get(Models).check_key(target)
