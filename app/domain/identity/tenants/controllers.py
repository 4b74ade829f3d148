from typing import Annotated

from litestar import Controller, delete, get, post, put
from litestar.params import JSONBody, QueryParameter

from app.domain.area import Areas
from app.http.dependencies import Id, Page, Principal, Services, Tx
from app.http.paging import Search, Sort
from app.http.records import Record, lock_row
from app.kit.paging import Paged

from . import service
from .schemas import CreateTenant, PlanName, TenantView, UpdateTenant


class TenantController(Controller):
    path = "/api/v1/tenants"
    tags = ["Tenants"]
    opt = {"needs": "admin:tenants"}

    @get(summary="List tenants")
    async def list_tenants(
        self,
        tx: Tx,
        page_in: Page,
        search: Search = None,
        plan: Annotated[PlanName | None, QueryParameter(description="Only this plan")] = None,
        sort: Sort = None,
    ) -> Paged[TenantView]:
        """Sort by name, plan or created_at; by default the newest first."""
        return await service.list_page(tx, page_in, search=search, plan=plan, sort=sort)

    @post(summary="Create a tenant")
    async def create_tenant(self, tx: Tx, data: JSONBody[CreateTenant]) -> TenantView:
        return await service.create(tx, data)

    @get("/{tenant_id:str}", summary="Get a tenant")
    async def get_tenant(self, tx: Tx, tenant_id: Id) -> TenantView:
        return await service.get(tx, tenant_id)

    @put(
        "/{tenant_id:str}",
        summary="Change a tenant",
        record=Record(lock_row("tenants", id="tenant_id")),
    )
    async def update_tenant(
        self, tx: Tx, services: Services, tenant_id: Id, data: JSONBody[UpdateTenant]
    ) -> TenantView:
        """Any subset of the fields. New limits apply from the tenant's next request on."""
        return await service.update(tx, services.session_cache, tenant_id, data)

    @delete("/{tenant_id:str}", summary="Delete an empty tenant")
    async def delete_tenant(
        self, tx: Tx, services: Services, principal: Principal, tenant_id: Id
    ) -> None:
        await service.delete(tx, services.get(Areas), tenant_id, principal.tenant_id)
