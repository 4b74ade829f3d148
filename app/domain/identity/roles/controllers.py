from litestar import Controller, get, put
from litestar.params import JSONBody

from app.domain.area import Areas
from app.http.dependencies import Id, Principal, Services, Tx
from app.http.records import Record

from . import service
from .schemas import Permissions, PermissionsSet, RolePermissions, SetPermissions


class RoleController(Controller):
    tags = ["Roles"]

    @get("/permissions", summary="List all permissions", needs="admin:users")
    async def list_permissions(self, services: Services) -> Permissions:
        return service.list_permissions(services.get(Areas))

    @get("/roles/{role:str}/permissions", summary="List a role's permissions", needs="admin:users")
    async def get_role_permissions(self, tx: Tx, role: Id) -> RolePermissions:
        return await service.get(tx, role)

    @put(
        "/roles/{role:str}/permissions",
        summary="Change a role's permissions",
        needs="admin:roles",
        record=Record(service.lock_grants),
    )
    async def change_role_permissions(
        self,
        tx: Tx,
        services: Services,
        principal: Principal,
        role: Id,
        data: JSONBody[SetPermissions],
    ) -> PermissionsSet:
        """The whole list, for every tenant, effective on the next request of live sessions."""
        return await service.set_permissions(tx, services, principal, role, data)

    @get("/me/permissions", summary="List my permissions", own=True)
    async def list_my_permissions(self, principal: Principal) -> RolePermissions:
        return service.get_own_permissions(principal)
