from litestar import Controller, delete, get, post
from litestar.params import JSONBody

from app.http.dependencies import Id, Principal, Services, Tx
from app.kit.views import Data

from . import keys, service
from .gateway import Models
from .schemas import CreateProviderKey, KeyTest, ModelView, ProviderKeyView


class ModelController(Controller):
    path = "/api/v1/models"
    tags = ["Models"]

    @get(summary="List usable models", needs="models:read")
    async def list_models(self, services: Services, principal: Principal) -> Data[list[ModelView]]:
        """The values that `primary_model` of an agent can have now: the local model while it runs,
        and the models of each provider for which this tenant has a key. The embedded models of
        embeddings and speech are `local/wordllama`, `local/espeak` and `local/moonshine`, for the
        routes in OpenAI's wire format.
        """
        async with services.db.tx(principal.home, autocommit=True) as tx:
            targets = await keys.list_default_targets(tx, services.keyring, principal.home)
        return Data(await service.list_usable(services.get(Models), targets))


class ProviderKeyController(Controller):
    path = "/api/v1/api-keys"
    tags = ["Models"]

    @get(summary="List provider keys", needs="models:read")
    async def list_provider_keys(self, tx: Tx) -> Data[list[ProviderKeyView]]:
        return Data(await keys.list_all(tx))

    @post(summary="Add a provider key", needs="models:write")
    async def create_provider_key(
        self, tx: Tx, services: Services, principal: Principal, data: JSONBody[CreateProviderKey]
    ) -> ProviderKeyView:
        """The key is encrypted at once and never shown again; `key_hint` has its last characters.
        This instance uses it only to call the provider; it grants no access to this API.
        """
        guard = services.egress.guard
        return await keys.create(tx, services.keyring, guard, principal.home, data)

    @delete("/{key_id:str}", summary="Delete a provider key", needs="models:write")
    async def delete_provider_key(self, tx: Tx, key_id: Id) -> None:
        await keys.delete(tx, key_id)

    @post(
        "/{key_id:str}/test",
        summary="Test a provider key",
        needs="models:write",
        status_code=200,
        idempotent=False,
        cost="execute",
    )
    async def test_provider_key(
        self, services: Services, principal: Principal, key_id: Id
    ) -> KeyTest:
        """Sends the provider a real request: it lists its models or voices, answers with one token,
        or searches the web for one result. A key that fails is `success: false`, not an error.
        """
        async with services.db.tx(principal.scope, autocommit=True) as tx:
            target = await keys.target_of(tx, services.keyring, key_id)
        return await keys.test(services.get(Models), services.egress, target)
