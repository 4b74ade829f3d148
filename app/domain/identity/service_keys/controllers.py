from typing import Annotated

from litestar import Controller, delete, get, post
from litestar.params import JSONBody, QueryParameter

from app.http.dependencies import Context, Id, Page, Tx
from app.http.paging import Sort
from app.kit.paging import Paged

from . import service
from .schemas import CreatedServiceKey, CreateServiceKey, ServiceKeyView


class ServiceKeyController(Controller):
    path = "/api/v1/service-keys"
    tags = ["Service keys"]
    opt = {"needs": "admin:keys"}

    @post(summary="Create a service key")
    async def create_key(
        self, context: Context, data: JSONBody[CreateServiceKey]
    ) -> CreatedServiceKey:
        """For a program: send it wherever an access token goes, except for accounts, MFA, roles and
        service keys. `key` is shown in this answer and never again. A tenant has at most 100 keys.
        """
        return await service.create(context, data)

    @get(summary="List service keys")
    async def list_keys(
        self,
        tx: Tx,
        page_in: Page,
        sort: Sort = None,
        created_by: Annotated[
            str | None, QueryParameter(max_length=64, description="Only this user's")
        ] = None,
    ) -> Paged[ServiceKeyView]:
        """The newest first, without those that were revoked."""
        return await service.list_page(tx, page_in, sort, created_by)

    @delete("/{key_id:str}", summary="Revoke a service key")
    async def revoke_key(self, context: Context, key_id: Id) -> None:
        """It stops working at once."""
        await service.revoke(context, key_id)
